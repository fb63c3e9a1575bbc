// Buttons that need scripts are hidden until there are scripts.

export function showTools(root) {
  for (const tools of root.querySelectorAll(".tools[hidden], [data-scripted][hidden]")) tools.hidden = false;
}
