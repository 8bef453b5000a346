"""The workbench's server: one page on this machine alone, built on NiceGUI."""

from __future__ import annotations

import socket
import tempfile
from html import escape
from pathlib import Path
from typing import Any

from ..errors import DataError, G2N2Error
from .files import MOST_BYTES
from .jobs import Jobs
from .languages import EXAMPLES
from .pairs import GALLERY
from .session import Message, Session, script
from .state import RANGES, from_query

HOST = "127.0.0.1"
PORT = 8765
ASSETS = Path(__file__).parent / "assets"
TITLE = "g2n2 workbench"


def serve(port: int = PORT, show: bool = True) -> None:
    """Serve the page until it is interrupted.

    Args:
        port: The port of 127.0.0.1; 0 for any free one.
        show: Whether a browser is opened.

    Raises:
        DataError: NiceGUI is not installed, or the port is taken.
    """
    try:
        from nicegui import app, ui
        from starlette.middleware.trustedhost import TrustedHostMiddleware
    except ImportError:
        raise DataError(
            'the workbench needs NiceGUI: pip install "g2n2[web]", or make workbench in a clone'
        ) from None
    free = free_port(port)
    jobs = Jobs()
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=[HOST, "localhost"])
    app.add_static_files("/workbench", ASSETS, max_cache_age=0)
    app.on_startup(jobs.warm_up)
    app.on_shutdown(jobs.close)
    sessions: dict[str, Session] = {}
    _add_page(jobs, sessions)
    _add_upload(sessions)
    address = f"g2n2 workbench: http://{HOST}:{free} (Ctrl+C stops it)"
    app.on_startup(lambda: print(address, flush=True))
    ui.run(
        host=HOST,
        port=free,
        title=TITLE,
        favicon="⊙",
        dark=None,
        show=show,
        reload=False,
        tailwind=False,
        show_welcome_message=False,
        binding_refresh_interval=None,
    )


def free_port(port: int) -> int:
    """The port itself where it is free, any free one for 0.

    Raises:
        DataError: It is taken.
    """
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            raise DataError(
                f"port {port} is taken, perhaps by another workbench: give another, --port 0 for "
                "any free one"
            ) from None
        return int(probe.getsockname()[1])


def page_html() -> str:
    """The page before anything is computed."""
    examples = "".join(
        f'<option value="{escape(name)}" title="{escape(line)}">{escape(name)}</option>'
        for name, (_, line) in EXAMPLES.items()
    )
    pairs = "".join(f"<option>{escape(name)}</option>" for name in GALLERY)
    html = (ASSETS / "page.html").read_text(encoding="utf-8")
    html = html.replace("<!-- examples -->", examples).replace("<!-- gallery -->", pairs)
    for name in ("nodes", "width", "layers"):
        least, most = RANGES[name]
        html = html.replace(f'id="{name}"', f'id="{name}" min="{least}" max="{most}"')
    return html


def _add_page(jobs: Jobs, sessions: dict[str, Session]) -> None:
    from nicegui import ui

    def page() -> None:
        client = ui.context.client
        ui.add_head_html('<link rel="stylesheet" href="/workbench/page.css">')
        ui.add_body_html('<script src="/workbench/page.js"></script>')
        ui.html(page_html(), sanitize=False).classes("workbench")

        def send(message: Message) -> None:
            client.run_javascript(script(message))

        session = Session(jobs, send, from_query(client.request.query_params))
        sessions[client.id] = session

        def ready(_: Any) -> None:
            send({"client": client.id})
            session.start()

        def left() -> None:
            sessions.pop(client.id, None)
            session.close()

        ui.on("workbench-ready", ready)
        ui.on("workbench", lambda event: session.receive(event.args))
        client.on_delete(left)

    ui.page("/")(page)


def _add_upload(sessions: dict[str, Session]) -> None:
    from nicegui import app
    from starlette.requests import Request
    from starlette.responses import JSONResponse

    async def upload(request: Request) -> JSONResponse:
        """Take a dropped file; only a page of this server knows the name of its client."""
        session = sessions.get(request.headers.get("x-workbench-client", ""))
        if session is None:
            return JSONResponse({"error": "reload the page, then drop the file again"}, 403)
        name = Path(request.query_params.get("name", "file")).name[:100]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "file"
            size = 0
            with path.open("wb") as file:
                async for chunk in request.stream():
                    size += len(chunk)
                    if size > MOST_BYTES:
                        text = f"{name} is larger than {MOST_BYTES // 2**20} MiB"
                        return JSONResponse({"error": f"{text}; g2n2 check takes any size"}, 413)
                    file.write(chunk)
            try:
                await session.inspect(path, name)
            except G2N2Error as fault:
                return JSONResponse({"error": str(fault)}, 400)
        return JSONResponse({})

    app.add_route("/workbench-file", upload, methods=["POST"])
