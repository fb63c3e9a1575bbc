"""Which addresses requests may go to: https, or plain http to this machine."""

import ipaddress
from urllib.parse import urlsplit


def url_problem(url: str) -> str:
    """Tells why requests to this URL are refused; empty if they are allowed."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return "is not a valid URL"
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        return "is not an http or https URL"
    if parts.username or parts.password:
        return "must not contain a user name or password"
    if parts.scheme == "http" and not is_this_machine(parts.hostname):
        return "would send your key and your sessions unencrypted: use https"
    return ""


def is_this_machine(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_url_of_this_machine(url: str) -> bool:
    return url_problem(url) == "" and is_this_machine(urlsplit(url).hostname or "")
