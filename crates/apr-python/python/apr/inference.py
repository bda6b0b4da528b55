"""Predictions of a server to which the rows are sent encrypted."""

from __future__ import annotations

import http.client
import json
import math
import os
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ._native import inference_key, private_request
from ._refusals import refused

if TYPE_CHECKING:
    from typing_extensions import Buffer

    _Key = str | os.PathLike[str] | bytes

__all__ = ["private_predict"]

_MEDIA_TYPE = "application/vnd.apr.private"
# What a server gives at most, with its padding and what encryption adds; a description of a session.
_ANSWER_MAX = (128 << 20) + 64
_OFFER_MAX = 64 << 10


def private_predict(
    url: str,
    rows: Any,
    *,
    key: _Key | None = None,
    verify_key: _Key | list[_Key] | None = None,
    trusted_keys: str | os.PathLike[str] | None = None,
    model: _Key | Buffer | None = None,
    proba: bool = False,
    timeout: float = 30.0,
    allow_http: bool = False,
) -> list[Any]:
    """Predictions by the model of a server (`apr serve --inference-key`), which only its owner and this process can read.

    The rows are encrypted to the public key of the model's owner, which has to come from somewhere trusted: `key`, or signed by
    `verify_key` or a key in the file `trusted_keys`, in the metadata of `model` or as the server offers it.

    Args:
        url: the address of the server, "https://models.example".
        rows: rows of numbers (lists, an array), mappings from the names of features to numbers, or texts.
        key: the public key of the owner, as text or the path of its file.
        verify_key: the public key of the signer, or a list of accepted ones.
        trusted_keys: a file with a list of such keys, one `NAME KEY` per line.
        model: a copy of the signed .apr model, as path or bytes.
        proba: also the probability of every class: {"class": ..., "probabilities": {...}} of each row.
        timeout: seconds for the connection, and for each pause of the answer.
        allow_http: also plain HTTP to other machines.

    Returns:
        One prediction per row, as `POST /predict` gives it.

    Raises:
        AprError: the key is not signed as it must be ("ac-untrusted-signer", "cy-signature", ...), the server refuses the request
            (its code), or the answer is not from the owner of the key ("cy-open").
        OSError: the server cannot be reached, or does not answer as `apr serve` does.
    """
    if key is not None and not (verify_key is None and trusted_keys is None and model is None):
        raise ValueError("key= is the owner's key itself: leave verify_key=, trusted_keys= and model= out, or it")
    if key is None and verify_key is None and trusted_keys is None:
        raise ValueError("whose key are the rows to be encrypted to? give verify_key=, trusted_keys= or key=")
    if "?" in url or "#" in url:
        raise ValueError("the address of a server has no query")
    address = url.rstrip("/")
    if not address.endswith("/private"):
        address += "/private"
    _check_address(address, allow_http)
    offer = _offer(address, timeout)
    if key is None and model is None and not (offer.get("key_file") and offer.get("signature")):
        raise refused("cli-inference-key", "the server offers no signed inference key: give model= or key=")
    to = inference_key(
        key=key,
        model=model,
        key_file=offer.get("key_file"),
        signature=offer.get("signature"),
        verify_key=verify_key,
        trusted_keys=trusted_keys,
    )
    if to != offer["key"]:
        raise refused("cli-inference-key", "the server has another inference key: it could not open the request")
    body = json.dumps({"rows": _plain(rows)}, allow_nan=False).encode()
    query = "proba=true" if proba else ""
    request, pending = private_request(to, offer["session"], query, "application/json", body)
    status, _, answer = pending.open(_exchange(address, request, timeout, _ANSWER_MAX))
    told = _json(answer, address)
    if status != 200:
        raise _error(told, status)
    predictions: list[Any] = told["predictions"]
    return predictions


def _plain(value: Any) -> Any:
    """Rows as JSON has them, where missing values are null and infinities the strings that the server reads."""
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else "inf" if value > 0 else "-inf"
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    # Of numpy and pandas, of polars, of pyarrow.
    for method in ("tolist", "to_list", "to_pylist"):
        if hasattr(value, method):
            return _plain(getattr(value, method)())
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        return [_plain(item) for item in value]
    raise TypeError(f"rows are lists, arrays, mappings or texts, not {type(value).__name__}")


def _offer(address: str, timeout: float) -> dict[str, Any]:
    offer = _json(_exchange(address, None, timeout, _OFFER_MAX), address)
    texts = [offer.get("session"), offer.get("key"), offer.get("key_file") or "", offer.get("signature") or ""]
    if not all(isinstance(text, str) for text in texts):
        raise OSError(f"no private inference at {address}")
    return offer


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A server that sends the client elsewhere is not the one that was named."""

    def redirect_request(self, *_: Any) -> None:
        return None


_OPENER = urllib.request.build_opener(_NoRedirects)


def _check_address(address: str, allow_http: bool) -> None:
    parts = urllib.parse.urlsplit(address)
    if parts.scheme not in ("http", "https"):
        raise ValueError("the address of a server begins with https:// or http://")
    if parts.scheme == "http" and not allow_http and parts.hostname not in ("localhost", "127.0.0.1", "::1"):
        raise refused("rm-http", f"plain http:// to {parts.hostname} is not allowed: use https://, or allow_http=True (rm-http)")


def _exchange(address: str, content: bytes | None, timeout: float, most: int) -> bytes:
    """The body of the answer to a GET, or to a POST of this content."""
    headers = {"Content-Type": _MEDIA_TYPE} if content is not None else {}
    request = urllib.request.Request(address, content, headers)
    try:
        with _OPENER.open(request, timeout=timeout) as response:
            body: bytes = response.read(most + 1)
    except urllib.error.HTTPError as error:
        with error:
            said = error.read(_OFFER_MAX)
        raise _error(_stated(said) or {}, error.code) from None
    except http.client.HTTPException as error:
        raise OSError(f"{address}: {error or type(error).__name__}") from error
    if len(body) > most:
        raise OSError(f"the answer of {address} has more than {most} bytes")
    return body


def _json(body: bytes, address: str) -> dict[str, Any]:
    value = _stated(body)
    if value is None:
        raise OSError(f"no private inference at {address}")
    return value


def _stated(body: bytes) -> dict[str, Any] | None:
    """A JSON object, if the bytes are one."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _error(told: dict[str, Any], status: int) -> Exception:
    error = told.get("error")
    if not isinstance(error, dict):
        return OSError(f"the server answered with status {status}")
    parts = [error.get("where"), error.get("message"), error.get("help")]
    text = ": ".join(str(part) for part in parts if part)
    code = str(error.get("code"))
    return refused(code, f"{text} ({code})")
