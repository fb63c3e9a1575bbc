// Light or dark: the choice is a cookie, so that the server renders the right one at once.

export function toggleTheme() {
  const root = document.documentElement;
  const isDark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = isDark ? "light" : "dark";
  document.cookie = `claude_mem_theme=${root.dataset.theme}; path=/; max-age=31536000; samesite=strict`;
}
