"""Malformed replies as real models write them, each with the text that the memory must contain.

An empty tuple means that the reply contains no memory, and that the draft must remain.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Malformed:
    name: str
    text: str
    survives: tuple[str, ...] = ()
    says_more: bool = False  # than memories hold: the full reply is stored too

    @property
    def is_usable(self) -> bool:
        return bool(self.survives)


_WHOLE = (
    "<observation><type>bugfix</type><title>Lamp blinked once</title><narrative>The timer was"
    " reset twice.</narrative></observation><summary><request>Blink twice</request><completed>It"
    " blinks twice</completed></summary>"
)

MALFORMED = [
    # nothing to read
    Malformed("empty", ""),
    Malformed("blank", " \n\t \r\n "),
    Malformed("prose", "I could not find anything worth remembering in this turn, sorry."),
    Malformed("json", '{"observations": [{"type": "bugfix", "heading": "Lamp"}]}'),
    Malformed("a refusal", "I can't help with that request."),
    Malformed("html error page", "<html><head></head><body><h1>502 Bad Gateway</h1></body></html>"),
    Malformed("only a think block", "<think>Let me see what happened here</think>"),
    Malformed("an empty block", "<observation></observation>"),
    Malformed("empty fields", "<observation><title></title><facts></facts></observation>"),
    Malformed("opening tag only", "<observation>"),
    Malformed("closing tags only", "</observation></summary></facts>"),
    Malformed("angle brackets", "<" * 5000 + ">" * 5000),
    Malformed("cut in its first tag", "<observ"),
    # something to read
    Malformed("chatter around it", f"Sure! Here is the memory:\n\n{_WHOLE}\n\nAnything else?",
              ("Lamp blinked once", "reset twice", "It blinks twice"), says_more=True),
    Malformed("a code fence around it", f"```xml\n{_WHOLE}\n```",
              ("Lamp blinked once", "It blinks twice")),
    Malformed("a fence that is never closed", f"```xml\n{_WHOLE}", ("Lamp blinked once",)),
    Malformed("a root element", f"<response><observations>{_WHOLE}</observations></response>",
              ("Lamp blinked once", "It blinks twice")),
    Malformed("upper case tags", _WHOLE.replace("observation", "OBSERVATION").replace(
        "title", "Title"), ("Lamp blinked once",)),
    Malformed("attributes", '<observation type="decision" id="1"><title lang="en">Keep the relay'
              '</title></observation>', ("Keep the relay", "decision"), says_more=True),
    Malformed("spaces in tags", "<observation ><title >Relay kept</title ></observation >",
              ("Relay kept",)),
    Malformed("cut in a narrative", "<observation><type>feature</type><title>Fog horn</title>"
              "<narrative>It sounds every thirty sec", ("Fog horn", "every thirty sec")),
    Malformed("cut in a closing tag", "<observation><title>Fog horn</title><narrative>It sounds"
              "</narra", ("Fog horn", "It sounds"), says_more=True),
    Malformed("cut in a list", "<observation><title>Fog horn</title><facts><fact>port 4711</fact>"
              "<fact>uses the rel", ("port 4711", "uses the rel")),
    Malformed("fields never closed", "<observation><title>Fog horn<narrative>It sounds<facts><fact>"
              "port 4711</observation>", ("Fog horn", "It sounds", "port 4711")),
    Malformed("block never closed before the next", "<observation><title>First</title><observation>"
              "<title>Second</title></observation>", ("First", "Second")),
    Malformed("an observation in an observation", "<observation><title>Outer</title><observation>"
              "<title>Inner</title></observation></observation>", ("Outer", "Inner")),
    Malformed("an observation in a summary", "<summary><request>Ask</request><observation><title>"
              "Strayed</title></observation></summary>", ("Ask", "Strayed")),
    Malformed("wrong order of closing", "<observation><title>Crossed</observation></title><summary>"
              "<learned>Wires</summary></learned>", ("Crossed", "Wires")),
    Malformed("fields without a block", "<title>Homeless</title><narrative>No roof.</narrative>",
              ("Homeless", "No roof.")),
    Malformed("a summary without a block", "<request>Ask</request><completed>Done</completed>",
              ("Ask", "Done")),
    Malformed("facts without a list", "<observation><title>T</title><fact>one</fact><fact>two"
              "</fact></observation>", ("one", "two")),
    Malformed("a list of bullets", "<observation><title>T</title><facts>\n- alpha\n* beta\n3. gamma"
              "\n</facts></observation>", ("alpha", "beta", "gamma")),
    Malformed("words in no field", "<observation>The pump leaks at joint four.</observation>",
              ("The pump leaks at joint four.",)),
    Malformed("words between fields", "<observation><title>Pump</title>and it leaks<type>bugfix"
              "</type></observation>", ("Pump", "and it leaks")),
    Malformed("unknown tags", "<observation><title>Pump</title><severity>very high</severity>"
              "</observation>", ("Pump", "very high")),
    Malformed("an unknown type", "<observation><type>epiphany</type><title>Pump</title>"
              "</observation>", ("Pump", "change"), says_more=True),
    Malformed("a type that is a sentence", "<observation><type>This is about the pump that leaks at"
              " the joint</type><title>Pump</title></observation>", ("Pump", "leaks at the joint")),
    Malformed("all the types", "<observation><type>bugfix | feature | refactor</type><title>Pump"
              "</title></observation>", ("Pump", "change"), says_more=True),
    Malformed("entities", "<observation><title>a &lt; b &amp;&amp; c &#62; d &#x41;</title>"
              "</observation>", ("a < b && c > d A",)),
    Malformed("bad entities", "<observation><title>R&D &nosuch; &#99999999; &#xD800; x</title>"
              "</observation>", ("R&D &nosuch;",)),
    Malformed("CDATA", "<observation><title><![CDATA[if a < b]]></title></observation>",
              ("if a < b",)),
    Malformed("tags in the text", "<observation><narrative>The <title> tag of the page and the"
              " <file> input were mixed up</narrative><title>Page</title></observation>",
              ("The <title> tag of the page and the <file> input", "Page")),
    Malformed("markup in the text", "<observation><title>Use <b>bold</b> and List<String></title>"
              "</observation>", ("List<String>",)),
    Malformed("two summaries", "<summary><request>Ask</request></summary><summary><completed>Done"
              "</completed></summary>", ("Ask", "Done")),
    Malformed("many observations", "".join(f"<observation><title>Number {n}</title></observation>"
              for n in range(100)), ("Number 0", "Number 9"), says_more=True),
    Malformed("a title of a page", f"<observation><title>{'long words ' * 300}</title>"
              "</observation>", ("long words",)),
    Malformed("unprintable characters", "<observation><title>a\0b\ud800c\x1bd</title>"
              "</observation>", ("abcd",)),
    Malformed("windows line ends", "<observation>\r\n<title>Ends\r\n</title>\r\n</observation>\r\n",
              ("Ends",)),
    Malformed("other names of fields", "<observation><title>T</title><text>in other words</text>"
              "</observation>", ("in other words",)),
    Malformed("think block before it", f"<think>It says <b>so</b></think>{_WHOLE}",
              ("Lamp blinked once",), says_more=True),
    Malformed("nothing but a skip", '<no_observation/><skip_summary reason="small talk"/>',
              ("",)),
    Malformed("only a type", "<observation><type>bugfix</type></observation>", ("bugfix",)),
    Malformed("only concepts", "<observation><concepts><concept>gotcha</concept></concepts>"
              "</observation>", ("gotcha",)),
    Malformed("the fence of the request", "<record>\n<type>bugfix</type>\n<title>Pump</title>"
              "<narrative>It leaks.\n</record>", ("Pump", "It leaks.")),
    Malformed("only files", "<observation><files_modified><file>lamp.c</file></files_modified>"
              "</observation>", ("lamp.c",)),
    Malformed("a summary of files", "<summary><files_read><file>lamp.h</file></files_read>"
              "</summary>", ("lamp.h",)),
]  # fmt: skip
