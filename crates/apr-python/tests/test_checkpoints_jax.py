"""Checkpoints of trainings of JAX: objects of flax.nnx, parameters of flax.linen, states of optax; and models of Keras."""

from __future__ import annotations

import collections
import os
import random
from typing import Any

import numpy as np
import pytest

os.environ.setdefault("KERAS_BACKEND", "jax")
jax = pytest.importorskip("jax")
optax = pytest.importorskip("optax")

import apr  # noqa: E402
import jax.numpy as jnp  # noqa: E402
from apr import structures  # noqa: E402
from apr.safetensors.numpy import load_file  # noqa: E402
from flax import linen, nnx  # noqa: E402
from flax.training.train_state import TrainState  # noqa: E402

N_STEPS = 10


def random_stop() -> int:
    return random.SystemRandom().randrange(1, N_STEPS)


def optimizer() -> Any:
    schedule = optax.warmup_cosine_decay_schedule(0.0, 1e-2, 3, 40)
    return optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(schedule), optax.ema(0.9))


class Net(nnx.Module):
    def __init__(self, rngs: nnx.Rngs) -> None:
        self.first = nnx.Linear(3, 8, rngs=rngs)
        self.norm = nnx.BatchNorm(8, rngs=rngs)
        self.drop = nnx.Dropout(0.5, rngs=rngs)
        self.layers = nnx.List([nnx.Linear(8, 8, rngs=rngs) for _ in range(2)])
        self.last = nnx.Linear(8, 1, rngs=rngs)
        self.tied = self.layers[0]

    def __call__(self, x: Any) -> Any:
        x = self.drop(self.norm(self.first(x)))
        for layer in (*self.layers, self.tied):
            x = nnx.relu(layer(x))
        return self.last(x)


@nnx.jit
def nnx_step(model: Any, state: Any, x: Any) -> Any:
    loss, grads = nnx.value_and_grad(lambda model: (model(x) ** 2).mean())(model)
    state.update(model, grads)
    return loss


def test_nnx_goes_on_to_the_bit(tmp_path):
    def made(seed: int) -> tuple[Any, Any, Any]:
        model = Net(nnx.Rngs(seed))
        return model, nnx.Optimizer(model, optimizer(), wrt=nnx.Param), np.random.default_rng(seed)

    def run(training: Any, first: int, save: Any = None) -> list[float]:
        model, state, data = training
        losses = []
        for step in range(first, N_STEPS):
            if save is not None:
                save(step)
            losses.append(float(nnx_step(model, state, jnp.asarray(data.normal(size=(6, 3)), jnp.float32))))
        return losses

    stop = random_stop()
    checkpoints = apr.Checkpoints(tmp_path)
    whole = made(0)

    def save(step: int) -> None:
        if step == stop:
            checkpoints.save(step, whole[0], whole[1], generators={"data": whole[2]})

    losses = run(whole, 0, save)
    resumed = made(9)
    checkpoint = checkpoints.load(stop)
    restored = checkpoint.load_into(*resumed[:2], generators={"data": resumed[2]})
    assert restored.model is resumed[0] and restored.optimizer is resumed[1]
    assert run(resumed, stop) == losses[stop:], f"stopped at {stop}"
    for ours, theirs in zip(resumed[:2], whole[:2], strict=True):
        assert jax.tree.all(jax.tree.map(equal, nnx.state(ours), nnx.state(theirs)))
    assert (checkpoint.framework, checkpoint.model_class, checkpoint.optimizer_class) == ("jax", "Net", "Optimizer")
    # Shared layers are stored once, under a name that says where they are.
    assert "layers.0.kernel" in checkpoint.model and not any(name.startswith("tied") for name in checkpoint.model)
    assert "opt_state.1.0.mu.layers.0.kernel" in load_file(checkpoint.path / "optimizer.safetensors")


def equal(a: Any, b: Any) -> bool:
    if jax.dtypes.issubdtype(a.dtype, jax.dtypes.prng_key):
        a, b = map(jax.random.key_data, (a, b))
    return a.dtype == b.dtype and a.weak_type == b.weak_type and bool((a == b).all())


def test_linen_and_optax_go_on_to_the_bit(tmp_path):
    model = linen.Sequential([linen.Dense(8), linen.relu, linen.Dense(1)])
    # With hyperparameters in the state, which are of weak types.
    transformation = optax.inject_hyperparams(optax.adamw)(learning_rate=optax.exponential_decay(1e-2, 5, 0.9), b1=0.8)

    def made(seed: int) -> tuple[Any, Any, Any]:
        params = model.init(jax.random.key(seed), jnp.ones((1, 3)))
        return params, transformation.init(params), jax.random.key(seed + 1, impl="rbg")

    @jax.jit
    def step(params: Any, state: Any, key: Any) -> tuple[Any, Any, Any, Any]:
        key, used = jax.random.split(key)
        x = jax.random.normal(used, (6, 3))
        loss, grads = jax.value_and_grad(lambda params: (model.apply(params, x) ** 2).mean())(params)
        updates, state = transformation.update(grads, state, params)
        return optax.apply_updates(params, updates), state, key, loss

    stop = random_stop()
    checkpoints = apr.Checkpoints(tmp_path)
    params, state, key = made(0)
    losses = []
    for at in range(N_STEPS):
        if at == stop:
            checkpoints.save(at, {"params": params, "key": key}, state, {"loss": jnp.float32(0.5)}, ema=params)
        params, state, key, loss = step(params, state, key)
        losses.append(float(loss))
    target = made(9)
    checkpoint = checkpoints.load(stop)
    restored = checkpoint.load_into({"params": target[0], "key": target[2]}, target[1], ema=target[0])
    assert type(restored.optimizer) is type(state) and jax.tree.structure(restored.optimizer) == jax.tree.structure(state)
    params, state, key = restored.model["params"], restored.optimizer, restored.model["key"]
    assert jax.tree.all(jax.tree.map(equal, restored.ema, params))
    compiled = step._cache_size()
    again = losses[:stop]
    for _ in range(stop, N_STEPS):
        params, state, key, loss = step(params, state, key)
        again.append(float(loss))
    assert again == losses, f"stopped at {stop}"
    assert step._cache_size() == compiled, "what is restored has the types of what was saved"
    assert checkpoint.metrics == {"loss": 0.5} and "params.params.layers_0.kernel" in checkpoint.model
    # No class stands in a file.
    for path in checkpoint.path.glob("*.safetensors"):
        assert b"ScaleByAdamState" not in path.read_bytes() and b"optax" not in path.read_bytes()


def test_a_train_state_is_one_tree(tmp_path):
    model = linen.Dense(2)

    def made(seed: int) -> Any:
        params = model.init(jax.random.key(seed), jnp.ones((1, 3)))
        return TrainState.create(apply_fn=model.apply, params=params, tx=optax.sgd(0.1, momentum=0.9))

    state = made(0)
    checkpoints = apr.Checkpoints(tmp_path)
    checkpoints.save(1, state)
    restored = checkpoints.load(1).load_into(made(1)).model
    assert type(restored) is TrainState and type(restored.step) is int
    assert jax.tree.all(jax.tree.map(equal, restored.params, state.params))
    # A step that is compiled makes an array of the counter.
    checkpoints.save(2, jax.jit(lambda state: state.replace(step=state.step + 1))(state))
    restored = checkpoints.load(2).load_into(made(1)).model
    assert type(restored.step) is int and restored.step == 1
    with pytest.raises(ValueError, match="`step` has the type int in the checkpoint, float in the tree"):
        checkpoints.load(2).load_into(made(1).replace(step=0.0))
    grads = jax.tree.map(jnp.ones_like, state.params)
    assert jax.tree.all(jax.tree.map(equal, restored.apply_gradients(grads=grads).params, state.apply_gradients(grads=grads).params))


def test_trees_that_differ_are_refused_by_name(tmp_path):
    checkpoints = apr.Checkpoints(tmp_path)
    tree = {"a": jnp.ones((2, 3)), "b": [jnp.zeros(4, jnp.bfloat16), 7]}
    checkpoints.save(1, tree)
    checkpoint = checkpoints.load(1)
    for target, message in (
        ({"a": jnp.ones((3, 2)), "b": tree["b"]}, r"`a` is float32\[2, 3\] in the checkpoint, float32\[3, 2\] in the tree"),
        ({"a": jnp.ones((2, 3), jnp.int32), "b": tree["b"]}, r"`a` is float32\[2, 3\] in the checkpoint, int32\[2, 3\]"),
        ({"a": tree["a"], "b": [tree["b"][0], jnp.array(7)]}, "`b.1` has the type int in the checkpoint, ArrayImpl in the tree"),
        ({"a": tree["a"], "b": [tree["b"][0], 7.0]}, "`b.1` has the type int in the checkpoint, float in the tree"),
        ({"a": tree["a"], "b": [0, 7]}, "`b.0` has the type ndarray in the checkpoint, int in the tree"),
        ({"a": tree["a"], "c": tree["b"]}, "lacks c.0, c.1 and has also b.0, b.1"),
        ({"a": tree["a"]}, "lacks nothing and has also b.0, b.1"),
        ({"a": jax.random.key(1), "b": tree["b"]}, "`a` is a key of no generator in the checkpoint"),
    ):
        with pytest.raises(ValueError, match=message):
            checkpoint.load_into(target)
    assert checkpoint.load_into({"a": tree["a"]}, strict=False).model["a"].shape == (2, 3)
    with pytest.raises(TypeError, match="leaf `x` is a object"):
        checkpoints.save(2, {"x": object(), "y": jnp.ones(1)})
    checkpoints.save(3, {"k": jax.random.key(1)})
    with pytest.raises(ValueError, match="`k` is a key of threefry2x32"):
        checkpoints.load(3).load_into({"k": jax.random.key(1, impl="rbg")})


def test_leaves_keep_their_kinds(tmp_path):
    tree = {
        "jax": jnp.arange(3, dtype=jnp.bfloat16),
        "weak": jnp.asarray(1.5),
        "numpy": np.arange(3.0),
        "scalar": np.int16(4),
        "int": 7,
        "float": float("nan"),
        "text": "x",
        "none": None,
        "tuple": (1, jnp.ones(())),
        "a.b": jnp.ones(1),
        "a": {"b": jnp.zeros(1)},
    }
    checkpoints = apr.Checkpoints(tmp_path)
    checkpoints.save(1, tree)
    other = jax.tree.map(lambda leaf: leaf if isinstance(leaf, (str, int, float)) else leaf * 0, tree)
    found = checkpoints.load(1).load_into(other).model
    assert jax.tree.structure(found) == jax.tree.structure(tree)
    for ours, theirs in zip(jax.tree.leaves(found), jax.tree.leaves(tree), strict=True):
        assert isinstance(ours, jax.Array) == isinstance(theirs, jax.Array)
        assert getattr(ours, "weak_type", None) == getattr(theirs, "weak_type", None)
        assert getattr(ours, "dtype", type(ours)) == getattr(theirs, "dtype", type(theirs))
        assert np.array_equal(np.asarray(ours), np.asarray(theirs)) or ours != ours and theirs != theirs
    assert found["a"]["b"] == 0 and found["a.b"] == 1
    assert isinstance(checkpoints.load(1).model["jax"], jax.Array) and isinstance(checkpoints.load(1, framework="np").model["jax"], np.ndarray)


def test_an_asynchronous_save_outlives_donated_buffers(tmp_path):
    @jax.jit
    def double(x: Any) -> Any:
        return x * 2

    donating = jax.jit(lambda x: x * 2, donate_argnums=0)
    params = {"w": double(jnp.arange(1e5))}
    expected = np.array(params["w"])
    with apr.Checkpoints(tmp_path) as checkpoints:
        checkpoints.save(1, params, asynchronous=True)
        for _ in range(5):
            params = {"w": donating(params["w"])}
    assert np.array_equal(checkpoints.load(1, framework="np").model["w"], expected)


def test_dictionaries_of_numpy_stay_what_they_were(tmp_path):
    checkpoints = apr.Checkpoints(tmp_path)
    checkpoints.save(1, {"w": np.ones(3)}, optimizer={"m": np.ones(2)}, optimizer_state={"lr": 0.1})
    loaded = checkpoints.load(1)
    assert loaded.framework is None and isinstance(loaded.model["w"], np.ndarray) and loaded.optimizer_state == {"lr": 0.1}
    assert sorted(path.name for path in loaded.path.iterdir())[0] == "manifest.json" and len(list(loaded.path.iterdir())) == 5


def test_structures_take_arrays_of_jax(tmp_path):
    structures.save_file({"x": [jnp.ones(2, jnp.bfloat16)]}, tmp_path / "a.safetensors")
    assert structures.load_file(tmp_path / "a.safetensors", "jax")["x"][0].dtype == jnp.bfloat16


keras = pytest.importorskip("keras")


def keras_model() -> Any:
    layers = keras.layers
    model = keras.Sequential(
        [
            keras.Input((3,)),
            layers.Dense(8, activation="relu"),
            layers.BatchNormalization(),
            layers.Dropout(0.5, seed=4),
            layers.Dense(8),
            layers.Dense(1),
        ]
    )
    schedule = keras.optimizers.schedules.ExponentialDecay(1e-2, 3, 0.9)
    model.compile(optimizer=keras.optimizers.AdamW(schedule, use_ema=True), loss="mse")
    return model


def keras_run(model: Any, data: Any, count: int) -> list[float]:
    def batch() -> tuple[Any, Any]:
        x = data.normal(size=(6, 3)).astype(np.float32)
        return x, x.sum(1, keepdims=True)

    return [float(model.train_on_batch(*batch())) for _ in range(count)]


def test_keras_goes_on_to_the_bit(tmp_path):
    stop = random_stop()
    checkpoints = apr.Checkpoints(tmp_path)
    whole, data = keras_model(), np.random.default_rng(0)
    losses = keras_run(whole, data, stop)
    checkpoints.save(stop, whole, generators={"data": data})
    losses += keras_run(whole, data, N_STEPS - stop)
    resumed, data = keras_model(), np.random.default_rng(9)
    checkpoint = checkpoints.load(stop)
    checkpoint.load_into(resumed, generators={"data": data})
    assert losses[:stop] + keras_run(resumed, data, N_STEPS - stop) == losses, f"stopped at {stop}"
    for ours, theirs in zip(resumed.variables + resumed.optimizer.variables, whole.variables + whole.optimizer.variables, strict=True):
        assert np.array_equal(keras.ops.convert_to_numpy(ours), keras.ops.convert_to_numpy(theirs)), ours.path
    assert (checkpoint.framework, checkpoint.model_class, checkpoint.optimizer_class) == ("keras", "Sequential", "AdamW")
    assert any(name.endswith("dense/kernel") or "dense_" in name for name in checkpoint.model)


def test_keras_models_that_differ_are_refused_by_name(tmp_path):
    checkpoints = apr.Checkpoints(tmp_path)
    checkpoints.save(1, keras.Sequential([keras.Input((3,)), keras.layers.Dense(2, name="out")]))
    before = keras.Sequential([keras.Input((3,)), keras.layers.Dense(4, name="out")])
    weights = [np.array(weight) for weight in before.get_weights()]
    with pytest.raises(ValueError, match=r"out/kernel` float32\[3, 2\] of the checkpoint is not .*out/kernel` float32\[3, 4\] of the model"):
        checkpoints.load(1).load_into(before)
    assert all(np.array_equal(now, then) for now, then in zip(before.get_weights(), weights, strict=True)), "nothing was changed"
    with pytest.raises(ValueError, match="the checkpoint has 2 variables of the model, the model 0: build it first"):
        checkpoints.load(1).load_into(keras.Sequential([keras.layers.Dense(2)]))
    with pytest.raises(ValueError, match="other/kernel"):
        checkpoints.load(1).load_into(keras.Sequential([keras.Input((3,)), keras.layers.Dense(2, name="other")]))


WIDE = {"count": np.array([2**40 + 1]), "third": np.array([1 / 3])}


def test_values_of_64_bits_keep_their_digits(tmp_path):
    checkpoints = apr.Checkpoints(tmp_path)
    checkpoints.save(1, {"stats": WIDE, "w": jnp.ones(1)}, {"m": {**WIDE, "w": jnp.ones(1)}})
    loaded = checkpoints.load(1)
    for found in (loaded.model, loaded.optimizer):
        wide = {name.rpartition(".")[2]: value for name, value in found.items()}
        assert isinstance(wide.pop("w"), jax.Array)
        assert {name: (value.dtype, value.tolist()) for name, value in wide.items()} == {
            name: (value.dtype, value.tolist()) for name, value in WIDE.items()
        }
    with pytest.raises(apr.safetensors.SafetensorError, match=r"`stats.count` is of type I64.*jax_enable_x64"):
        _ = checkpoints.load(1, framework="jax").model
    with jax.enable_x64(True):
        assert checkpoints.load(1, framework="jax").model["stats.count"].tolist() == [2**40 + 1]


def test_a_tree_of_numpy_is_no_checkpoint_of_jax(tmp_path):
    checkpoints = apr.Checkpoints(tmp_path)
    checkpoints.save(1, {"stats": WIDE})
    loaded = checkpoints.load(1)
    assert loaded.framework is None and all(isinstance(value, np.ndarray) for value in loaded.model.values())
    assert loaded.model["stats.count"].tolist() == [2**40 + 1]
    again = loaded.load_into({"stats": {name: np.zeros_like(value) for name, value in WIDE.items()}}).model
    assert again["stats"]["count"].tolist() == [2**40 + 1]


def test_tensors_of_torch_in_a_tree_are_not_those_of_jax(tmp_path):
    torch = pytest.importorskip("torch")
    for model in ({"m": {"w": torch.ones(1)}}, [torch.ones(1)]):
        with pytest.raises(TypeError, match=r"not an array|cannot be saved as a model"):
            apr.Checkpoints(tmp_path).save(1, model)


def test_paths_of_one_name_are_told_apart(tmp_path):
    checkpoints = apr.Checkpoints(tmp_path)

    def made(factor: float) -> Any:
        return {"a.b": jnp.full(1, factor), "a": {"b": jnp.full(1, 2 * factor)}, "a.b~2": jnp.full(1, 3 * factor), "c": jnp.ones(1)}

    checkpoints.save(1, made(1.0))
    loaded = checkpoints.load(1)
    assert len(loaded.model) == 4
    whole = loaded.load_into(made(0.0)).model
    assert (whole["a.b"][0], whole["a"]["b"][0], whole["a.b~2"][0]) == (1, 2, 3)
    for name in ("a.b", "a", "a.b~2"):
        part = {name: made(0.0)[name]}
        assert jax.tree.all(jax.tree.map(np.array_equal, loaded.load_into(part, strict=False).model[name], made(1.0)[name])), name
        with pytest.raises(ValueError, match="the trees differ"):
            loaded.load_into(part)
    # What was saved of one path is not given to two.
    checkpoints.save(2, {"a": {"b": jnp.ones(1)}})
    with pytest.raises(ValueError, match="lacks a.b~2"):
        checkpoints.load(2).load_into({"a.b": jnp.ones(1), "a": {"b": jnp.ones(1)}}, strict=False)


def test_keys_of_one_text_are_told_apart(tmp_path):
    checkpoints = apr.Checkpoints(tmp_path)

    def made(factor: float) -> Any:
        return collections.OrderedDict([(1, {"w": jnp.full(1, factor)}), ("1", {"w": jnp.full(1, 2 * factor)})])

    checkpoints.save(1, made(1.0))
    whole = checkpoints.load(1).load_into(made(0.0)).model
    assert (whole[1]["w"][0], whole["1"]["w"][0]) == (1, 2)
