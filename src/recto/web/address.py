"""The address that the page listens on, taken before anything heavy is imported: a wrong one is told at once."""

import socket

from recto.errors import RectoError

# Where this port is taken, any other serves.
USUAL_PORT = 8642
LONGEST_QUEUE = 128


def listening_socket(host: str, port: int | None) -> socket.socket:
    """Without a port on the usual one, or on any other where that is taken."""
    ports = [USUAL_PORT, 0] if port is None else [port]
    for place, each in enumerate(ports, 1):
        try:
            return _listening(host, each)
        except (OSError, UnicodeError) as why:
            if place == len(ports):
                at = f"{host} port {port}" if port else host
                reason = getattr(why, "strerror", None) or "it is not a name of this machine"
                hint = "; --port and --host name another place"
                raise RectoError(f"cannot listen on {at}: {reason}{hint}", host=host, port=port) from why
    raise AssertionError("one of the ports was tried last")


def _listening(host: str, port: int) -> socket.socket:
    family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
        made.listen(LONGEST_QUEUE)
    except OSError:
        made.close()
        raise
    return made
