"""Downloads through the real ``fetch_file``, from a server on this machine only."""

import gzip
import hashlib
import socket
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO

import pytest

from skpuffer.datasets._tables import RemoteTable, load_table
from tests.refused import refused, says

PUBLISHED = b"1, a\n2, b\n"
READY = b"x,y\n1,a\n2,b\n"


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def zipped(**members):
    """Return the bytes of a zip archive; ``__`` in a keyword stands for a dot."""
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            # of one date, so that the names of tests do not tell the time
            member = zipfile.ZipInfo(name.replace("__", "."))
            archive.writestr(member, content, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


class Server:
    """What the local server answers, by path, and what it was asked."""

    def __init__(self, port):
        self.root = f"http://127.0.0.1:{port}/"
        self.answers = {}
        self.asked = []

    def serves(self, path, content=b"", status=200):
        self.answers["/" + path] = (status, content)
        return self.root + path


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("no_proxy", "*")

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            book.asked.append(self.path)
            status, content = book.answers.get(self.path, (404, b""))
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *args):
            pass

    running = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    book = Server(running.server_port)
    thread = threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield book
    running.shutdown()
    running.server_close()
    thread.join()


@pytest.fixture
def nowhere(monkeypatch):
    """Return an address at which nothing listens."""
    monkeypatch.setenv("no_proxy", "*")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    return f"http://127.0.0.1:{port}/"


def table(*urls):
    return RemoteTable(
        dataset="toy",
        name="toy.data",
        sha256=sha256(PUBLISHED),
        urls=urls,
        ready_name="toy_ready.csv",
        ready_sha256=sha256(READY),
    )


def load(what, home, **options):
    return load_table(what, data_home=home, **{"n_retries": 0, "delay": 0} | options)


def files_below(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


CACHED = ["skpuffer_toy", "skpuffer_toy/toy.data"]


@pytest.mark.parametrize(
    "path, served",
    [
        ("toy.data", PUBLISHED),
        ("toy.zip", zipped(toy__data=PUBLISHED, readme="text")),
        ("deep.zip", zipped(**{"folder/toy__data": PUBLISHED})),
        ("outer.zip", zipped(inner__zip=zipped(toy__data=PUBLISHED))),
        ("two.zip", zipped(**{"old/toy__data": b"old", "new/toy__data": PUBLISHED})),
    ],
)
def test_download_is_verified_cached_and_not_repeated(server, tmp_path, path, served):
    what = table(server.serves(path, served))
    assert load(what, tmp_path) == (PUBLISHED, False)
    assert files_below(tmp_path) == CACHED
    assert load(what, tmp_path) == (PUBLISHED, False)
    assert load(what, tmp_path, download_if_missing=False) == (PUBLISHED, False)
    assert server.asked == ["/" + path]


@pytest.mark.parametrize(
    "path, served, reason",
    [
        ("toy.data", b"changed", sha256(b"changed")),
        ("toy.zip", zipped(toy__data=b"changed"), sha256(b"changed")),
        ("toy.zip", zipped(other__data=PUBLISHED), "holds no toy.data"),
        ("toy.zip", b"<html>moved</html>", "not a zip file"),
        ("toy.zip", zipped(toy__data=PUBLISHED)[:-30], "not a zip file"),
        (
            "toy.zip",
            zipped(a__zip=zipped(b__zip=zipped(toy__data=PUBLISHED))),
            "holds no toy.data",
        ),
    ],
)
def test_wrong_content_is_refused(server, tmp_path, path, served, reason):
    with refused(OSError, "dataset.download_failed") as caught:
        load(table(server.serves(path, served)), tmp_path)
    assert reason in str(caught.value)
    assert server.root + path in str(caught.value)
    assert files_below(tmp_path) == []


PARTS = {"b/t2": b"2, b\n", "a/t1": b"1, a\n", "readme": b"text"}


def in_parts(*urls):
    return replace(
        table(*urls),
        part=r"t\d",
        assemble=lambda parts: b"".join(parts[path] for path in sorted(parts)),
    )


@pytest.mark.parametrize(
    "path, served",
    [
        ("parts.zip", zipped(**PARTS)),
        ("outer.zip", zipped(inner__zip=zipped(**PARTS))),
    ],
)
def test_table_in_parts_is_assembled_then_verified(server, tmp_path, path, served):
    what = in_parts(server.serves(path, served))
    assert load(what, tmp_path) == (PUBLISHED, False)
    assert files_below(tmp_path) == CACHED
    assert load(what, tmp_path, download_if_missing=False) == (PUBLISHED, False)


@pytest.mark.parametrize(
    "served, reason",
    [
        (zipped(**{"a/t1": b"1, a\n"}), sha256(b"1, a\n")),
        (zipped(readme="text"), "holds no toy.data"),
    ],
)
def test_table_that_lacks_parts_is_refused(server, tmp_path, served, reason):
    with refused(OSError, "dataset.download_failed") as caught:
        load(in_parts(server.serves("parts.zip", served)), tmp_path)
    assert reason in str(caught.value)
    assert files_below(tmp_path) == []


def test_oversized_member_is_not_unpacked(server, tmp_path, monkeypatch):
    monkeypatch.setattr("skpuffer.datasets._tables._LARGEST_MEMBER", len(PUBLISHED) - 1)
    what = table(server.serves("toy.zip", zipped(toy__data=PUBLISHED)))
    with refused(OSError, "dataset.download_failed"):
        load(what, tmp_path)


def test_second_address_stands_in_for_the_first(server, tmp_path):
    what = table(
        server.root + "gone",
        server.serves("changed", b"changed"),
        server.serves("empty.zip", zipped(other__data=b"")),
        server.serves("good.zip", zipped(toy__data=PUBLISHED)),
    )
    assert load(what, tmp_path) == (PUBLISHED, False)
    assert server.asked == ["/gone", "/changed", "/empty.zip", "/good.zip"]
    assert files_below(tmp_path) == CACHED


def test_server_error_is_retried_then_reported(server, tmp_path):
    what = table(server.serves("toy.data", status=500))
    with (
        pytest.warns(UserWarning, match="Retry downloading"),
        refused(OSError, "dataset.download_failed") as caught,
    ):
        load(what, tmp_path, n_retries=2)
    assert server.asked == ["/toy.data"] * 3
    assert says(caught.value, "dataset.download_failed", name="toy.data")
    assert files_below(tmp_path) == []


def test_no_network_names_both_ways_and_asks_the_host_once(nowhere, tmp_path):
    what = table(nowhere + "toy.data", nowhere + "toy.zip")
    with refused(OSError, "dataset.download_failed") as caught:
        load(what, tmp_path)
    message = str(caught.value)
    for word in ("toy.data", "toy_ready.csv.gz", str(tmp_path), nowhere + "toy.data"):
        assert word in message
    assert "toy.zip" not in message
    assert files_below(tmp_path) == []


def test_download_forbidden_touches_no_network(server, tmp_path):
    what = table(server.serves("toy.data", PUBLISHED))
    with refused(OSError, "dataset.download_forbidden") as caught:
        load(what, tmp_path, download_if_missing=False)
    for word in ("toy.data", "toy_ready.csv", str(tmp_path), "connect"):
        assert word in str(caught.value)
    assert server.asked == []


def test_cache_that_cannot_be_written_is_an_error_with_a_remedy(server, tmp_path):
    (tmp_path / "skpuffer_toy").write_text("a file in the folder's place")
    what = table(server.serves("toy.data", PUBLISHED))
    with refused(OSError, "dataset.download_failed", name="toy.data"):
        load(what, tmp_path)


def test_parallel_downloads_do_not_disturb_each_other(server, tmp_path):
    what = table(server.serves("toy.zip", zipped(toy__data=PUBLISHED)))
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: load(what, tmp_path), range(16)))
    assert results == [(PUBLISHED, False)] * 16
    assert files_below(tmp_path) == CACHED


@pytest.mark.parametrize("folder", [".", "skpuffer_toy"])
@pytest.mark.parametrize(
    "name, content, ready",
    [("toy.data", PUBLISHED, False), ("toy_ready.csv", READY, True)],
)
@pytest.mark.parametrize("packed", [False, True])
def test_local_file_needs_no_network(tmp_path, folder, name, content, ready, packed):
    (tmp_path / folder).mkdir(exist_ok=True)
    path = tmp_path / folder / (name + ".gz" * packed)
    path.write_bytes(gzip.compress(content) if packed else content)
    assert load(table(), tmp_path) == (content, ready)


@pytest.mark.parametrize("name", ["toy.data", "toy.data.gz", "toy_ready.csv"])
def test_local_file_that_differs_is_named(server, tmp_path, name):
    content = PUBLISHED + b"3, c\n"
    stored = gzip.compress(content) if name.endswith(".gz") else content
    (tmp_path / name).write_bytes(stored)
    what = table(server.serves("toy.data", PUBLISHED))
    with refused(OSError, "dataset.file_digest_differs") as caught:
        load(what, tmp_path)
    message = str(caught.value)
    for word in (str(tmp_path / name), sha256(content), what.sha256, what.ready_sha256):
        assert word in message
    assert (tmp_path / name).read_bytes() == stored
    assert server.asked == []


@pytest.mark.parametrize(
    "stored", [PUBLISHED, gzip.compress(PUBLISHED, mtime=0)[:-4], b""]
)
def test_damaged_gzip_is_named(tmp_path, stored):
    path = tmp_path / "toy.data.gz"
    path.write_bytes(stored)
    with refused(
        OSError, ("dataset.file_digest_differs", "dataset.file_not_uncompressed")
    ) as caught:
        load(table(), tmp_path)
    assert str(path) in str(caught.value)


def test_default_home_is_that_of_scikit_learn(tmp_path, monkeypatch):
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path))
    (tmp_path / "toy.data").write_bytes(PUBLISHED)
    assert load(table(), None) == (PUBLISHED, False)
