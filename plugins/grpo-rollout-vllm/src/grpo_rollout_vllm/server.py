"""One vLLM server: what it is, which weights it has, how it gets others, and what it answers.

Place in the flow: fleet → **server** → connection.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from packaging.version import InvalidVersion, Version

from grpo_core.api import RolloutError
from grpo_rollout_vllm.adapter import ADAPTER_NAME, AdapterFiles, has_own_base
from grpo_rollout_vllm.broadcast import Broadcast, TensorFact
from grpo_rollout_vllm.connection import Connection, Refused, Unreachable
from grpo_rollout_vllm.launch import EXTENSION
from grpo_rollout_vllm.meeting import Meeting
from grpo_rollout_vllm.model_facts import differences
from grpo_rollout_vllm.options import VllmRolloutOptions
from grpo_rollout_vllm.spool import Spooled, read_tensors

__all__ = ["OLDEST_VLLM", "PROTOCOL", "About", "Server"]

OLDEST_VLLM = "0.32"
PROTOCOL = 2
"""What a server's extension must say; worker.py has its own, as it may be another version."""
_ASK_LIMIT_S = 60.0
_MISMATCH = "grpo: "


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What a server says about itself."""

    device: str
    """`cpu` or `cuda`."""
    members: int
    """Worker processes, over all engines."""
    context_tokens: int
    """The most tokens of prompt and completion together."""
    sequences: int
    """The most that are generated at once."""


class Server:
    """Methods block; they raise `Unreachable` when the server is not there, and `RolloutError` for what no waiting
    helps."""

    def __init__(self, url: str, options: VllmRolloutOptions, *, key: str | None = None) -> None:
        self.url = url.rstrip("/")
        self._options = options
        self._connection = Connection(url, key=key)

    def label(self) -> str:
        """What it calls the weights that it has. The engine itself answers, so this says that it lives, too."""
        answer = self._get("/weight_info", limit_s=self._options.silence_limit_s)
        return str(answer["weight_version"])

    def about(self, model: Mapping[str, str | int | bool]) -> About:
        """What it is; raises `RolloutError` when it is no server for a run with `model`."""
        self._check_version(str(self._get("/version", limit_s=_ASK_LIMIT_S).get("version")))
        told = self._call("grpo_about", limit_s=_ASK_LIMIT_S)
        if told.get("protocol") != PROTOCOL:
            raise RolloutError(
                f"the vLLM server {self.url} runs another grpo-rollout-vllm than this run",
                hint="install the same version of it where the server runs, and start the server again",
            )
        other = differences(dict(model), told["model"])
        if other:
            raise RolloutError(
                f"the vLLM server {self.url} has another model than this run: {', '.join(other)}",
                hint="start it with the run's model: grpoctl rollout --model …",
            )
        if told["logprobs"] != "raw_logprobs":
            raise RolloutError(
                f"the vLLM server {self.url} reports {told['logprobs']}, which the trainer cannot compare with its own",
                hint="start it without --logprobs-mode",
            )
        if told["device"] == "cpu" and told["cuts_prompts"]:
            raise RolloutError(
                f"the vLLM server {self.url} cuts long prompts in two, and on a CPU vLLM dies of that where "
                "completions have seeds",
                hint="start it by `grpoctl rollout`, or with --no-enable-chunked-prefill",
            )
        return About(
            device=told["device"],
            members=int(self._get("/get_world_size", limit_s=_ASK_LIMIT_S)["world_size"]),
            context_tokens=told["context_tokens"],
            sequences=told["sequences"],
        )

    def generate(self, payload: Mapping[str, Any]) -> Mapping[str, Any]:
        """Its answer to a prompt."""
        try:
            answer: Mapping[str, Any] = self._connection.post(
                "/inference/v1/generate", payload, limit_s=self._options.request_limit_s
            )
        except Refused as error:
            if error.status >= 500:
                raise Unreachable(f"it answered {error.status}: {error.message}") from None
            raise RolloutError(f"the vLLM server {self.url} refuses a prompt: {error.message}") from None
        return answer

    def take_over(self, spooled: Spooled, about: About) -> None:
        """Bring weights to it: nothing is generated meanwhile, and afterwards nothing is left of the old ones."""
        # What it generates now is for a run that died: this one has no prompt out that it needs.
        self._post("/pause?mode=abort")
        if self._reads_folder(spooled):
            self._call("grpo_load", str(spooled.folder), spooled.fingerprint, limit_s=self._options.transfer_limit_s)
        else:
            self._send(spooled, about)
        self._forget_old(spooled.label)

    def take_over_adapter(self, adapter: AdapterFiles) -> None:
        """Bring a LoRA adapter to it, beside the model that it was started with."""
        if not has_own_base(self.label()):
            raise RolloutError(
                f"the vLLM server {self.url} has the weights of a run that trained all of them, and no model for an "
                "adapter any more",
                hint="start it again, or set rollout.options.lora to merged",
            )
        self._post("/pause?mode=abort")
        self._require_sight(adapter.folder, adapter.label)
        if not self._call("grpo_check_adapter", str(adapter.folder), adapter.fingerprint, limit_s=_ASK_LIMIT_S)["same"]:
            raise RolloutError(f"the vLLM server {self.url} reads another adapter in {adapter.folder} than was written")
        self._load_adapter(adapter.folder)
        self._forget_old(adapter.label)

    def disown(self) -> None:
        """Make nobody believe that it has a run's newest adapter, which only its number tells from an older one."""
        if self.label().endswith("-lora"):
            self._post("/update_weight_version", {"new_version": "grpo-none-lora"})

    def resume(self) -> None:
        """Let it generate."""
        self._post("/resume")

    def abandon(self) -> None:
        """Break off every call that waits for it."""
        self._connection.abandon()

    def _check_version(self, version: str) -> None:
        try:
            fits = Version(version) >= Version(OLDEST_VLLM)
        except InvalidVersion:
            fits = True  # a build from source; what it lacks shows in the next call
        if not fits:
            raise RolloutError(
                f"the server {self.url} runs vLLM {version}, and this plugin needs {OLDEST_VLLM} or newer",
                hint=f"pip install 'vllm>={OLDEST_VLLM}' where the server runs",
            )

    def _reads_folder(self, spooled: Spooled) -> bool:
        if self._options.transfer == "folder":
            self._require_sight(spooled.folder, spooled.label)
        return self._options.transfer != "network" and self._sees(spooled.folder, spooled.label)

    def _sees(self, folder: Path, content: str) -> bool:
        marker = folder / "label"
        marker.write_text(content, encoding="utf-8")
        return bool(self._call("grpo_sees", str(marker), content, limit_s=_ASK_LIMIT_S)["sees"])

    def _require_sight(self, folder: Path, content: str) -> None:
        if not self._sees(folder, content):
            raise RolloutError(
                f"the vLLM server {self.url} does not see the folder {folder} that the weights are in",
                hint="set rollout.options.weights_folder to one that both see; or send whole weights: "
                "rollout.options.transfer network, and lora merged",
            )

    def _load_adapter(self, folder: Path) -> None:
        body = {"lora_name": ADAPTER_NAME, "lora_path": str(folder), "load_inplace": True}
        try:
            self._connection.post("/v1/load_lora_adapter", body, limit_s=self._options.transfer_limit_s)
        except Refused as error:
            raise RolloutError(
                f"the vLLM server {self.url} does not take the adapter: {error.message}",
                hint="start it by `grpoctl rollout` with --enable-lora and a --max-lora-rank of at least "
                "trainer.lora.rank",
            ) from None

    def _forget_old(self, label: str) -> None:
        """Make the new weights the ones it has: nothing that the old ones computed is used again."""
        if not self._post("/reset_prefix_cache")["success"]:
            raise Unreachable("it could not forget what it computed with the old weights")
        self._post("/reset_encoder_cache")
        self._post("/update_weight_version", {"new_version": label})
        self.resume()

    def _send(self, spooled: Spooled, about: About) -> None:
        """Send the weights to its workers, all at once."""
        limit_s, device = self._options.transfer_limit_s, _device_like(about)
        facts = [TensorFact.of(name, tensor).written() for name, tensor in read_tensors(spooled.folder)]
        host = self._options.transfer_host or self._connection.local_address()
        meeting = self._meeting(host)
        failed: list[Exception] = []

        def receive() -> None:
            try:
                place = (host, meeting.port, meeting.secret)
                arguments = (*place, 1 + about.members, device.type, facts, spooled.fingerprint, limit_s)
                self._call("grpo_receive", *arguments, limit_s=limit_s)
            except (Unreachable, RolloutError) as error:
                failed.append(error)

        receiver = threading.Thread(target=receive, name=f"weights to {self.url}", daemon=True)
        receiver.start()
        try:
            with Broadcast.open(
                meeting, members=1 + about.members, device=device, limit_s=limit_s, given_up=lambda: bool(failed)
            ) as group:
                group.send(read_tensors(spooled.folder))
        except RuntimeError as error:  # torch's, when an end is gone
            receiver.join(_ASK_LIMIT_S)
            raise failed[0] if failed else Unreachable(f"the transfer broke ({error})") from error
        finally:
            meeting.close()
        receiver.join(limit_s)
        if failed:
            raise failed[0]

    def _meeting(self, host: str) -> Meeting:
        try:
            return Meeting(host)
        except OSError as error:
            raise RolloutError(
                f"weights for the vLLM server {self.url} cannot be sent from {host}: {error.strerror or error}",
                hint="rollout.options.transfer_host must be an address of this machine that the server reaches",
            ) from error

    def _call(self, method: str, *arguments: Any, limit_s: float) -> Any:
        """Call a method of every worker; the first one's result."""
        body = {"method": method, "args": list(arguments)}
        try:
            return self._connection.post("/collective_rpc", body, limit_s=limit_s)["results"][0]
        except Refused as error:
            raise self._refusal(error, method) from None

    def _get(self, path: str, *, limit_s: float) -> Any:
        try:
            return self._connection.get(path, limit_s=limit_s)
        except Refused as error:
            raise self._refusal(error, path) from None

    def _post(self, path: str, content: Any = None) -> Any:
        try:
            return self._connection.post(path, content, limit_s=_ASK_LIMIT_S)
        except Refused as error:
            raise self._refusal(error, path) from None

    def _refusal(self, error: Refused, asked: str) -> Exception:
        """What a refusal means."""
        if error.status in (404, 405) or "has no attribute" in error.message:
            return RolloutError(
                f"the server {self.url} does not know {asked}: it cannot take a run's weights over",
                hint="start it by `grpoctl rollout`, or by hand with what that prints: VLLM_SERVER_DEV_MODE=1, "
                f"--worker-extension-cls {EXTENSION}, --enable-scale-out",
            )
        if error.status in (401, 403):
            return RolloutError(
                f"the server {self.url} refuses {asked}: {error.message}",
                hint="set rollout.options.api_key_variable for a server started with --api-key; without one, start it "
                "by `grpoctl rollout`",
            )
        if _MISMATCH in error.message:
            found = error.message.partition(_MISMATCH)[2].partition("'")[0]
            return RolloutError(
                f"the vLLM server {self.url} did not get the weights that were sent: {found}",
                hint="is the disk full, or does another process write to rollout.options.weights_folder?",
            )
        return Unreachable(f"it answered {error.status} to {asked}: {error.message}")


def _device_like(about: About) -> torch.device:
    """Where tensors are sent from: NCCL needs a GPU at both ends."""
    return torch.device("cuda" if about.device == "cuda" and torch.cuda.is_available() else "cpu")
