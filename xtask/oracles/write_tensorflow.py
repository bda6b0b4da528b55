"""Checkpoints, SavedModels and Keras files, written by TensorFlow.

    write_tensorflow.py FOLDER COUNT SEED
"""

from __future__ import annotations

import io
import os
import zipfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import keras
import tensorflow as tf
from writing import NAMES, Writing, datasets, row_of

writing = Writing()
pick = writing.random

DTYPES = [name for name in NAMES if hasattr(tf.dtypes, name) and "fnuz" not in name and "e8m0" not in name]


def stored(prefix: str) -> dict[str, list]:
    """What TensorFlow itself reads from a checkpoint, but for text."""
    reader = tf.train.load_checkpoint(prefix)
    kinds = reader.get_variable_to_dtype_map()
    return {name: row_of(reader.get_tensor(name)) for name, kind in kinds.items() if kind != tf.string}


def variable() -> tf.Variable:
    return tf.Variable(writing.array(tf.as_dtype(pick.choice(DTYPES)).as_numpy_dtype))


def letters() -> str:
    return "".join(pick.choice("abcdefgh_") for _ in range(pick.randint(1, 8))).strip("_") or "x"


def checkpoints(count: int) -> None:
    for number in range(count):
        root = tf.train.Checkpoint()
        for idx in range(pick.choice([1, 2, 5, 60])):
            value: object = variable()
            if pick.random() < 0.3:
                value = [value, {"inner": variable()}]
            setattr(root, f"{letters()}{idx}", value)
        prefix = str(writing.folder / f"checkpoint_{number}")
        path = root.write(prefix)
        writing.expect(f"checkpoint_{number}.index", stored(path))


def partitioned(count: int) -> None:
    """Variables in parts, as TensorFlow 1 wrote them."""
    v1 = tf.compat.v1
    for number in range(count):
        with tf.Graph().as_default(), v1.Session() as session:
            for idx in range(pick.randint(1, 4)):
                array = writing.array(pick.choice(["float32", "float64", "int32"]), (pick.randint(2, 9), pick.randint(1, 5)))
                axis = pick.choice([0, 1])
                parts = min(pick.randint(1, 3), array.shape[axis])
                v1.get_variable(
                    f"v{idx}",
                    shape=array.shape,
                    dtype=array.dtype,
                    initializer=lambda shape, dtype, partition_info=None, array=array: tf.constant(
                        array[tuple(slice(at, at + size) for at, size in zip(partition_info.var_offset, shape))]
                        if partition_info
                        else array
                    ),
                    partitioner=tf.compat.v1.fixed_size_partitioner(parts, axis=axis),
                    use_resource=pick.random() < 0.5,
                )
            session.run(v1.global_variables_initializer())
            path = v1.train.Saver().save(session, str(writing.folder / f"parts_{number}"), write_meta_graph=False)
        writing.expect(f"parts_{number}.index", stored(path))


class Module(tf.Module):
    def __init__(self):
        super().__init__()
        self.weight = tf.Variable(writing.array("float32", (3, pick.randint(1, 5))))
        self.parts = [variable() for _ in range(pick.randint(0, 3))]


def saved_models(count: int) -> None:
    for number in range(count):
        tf.saved_model.save(Module(), str(writing.folder / f"saved_{number}"))
        writing.expect(f"saved_{number}", stored(str(writing.folder / f"saved_{number}/variables/variables")))


def keras_files(count: int) -> None:
    for number in range(count):
        dtype = pick.choice(["float32", "float64", "float16"])
        layers = [keras.layers.Dense(pick.randint(1, 9), dtype=dtype) for _ in range(pick.randint(1, 4))]
        layers.append(keras.layers.BatchNormalization(dtype=dtype))
        model = keras.Sequential([keras.Input((pick.randint(1, 9),)), *layers])
        model.compile(optimizer="adam", loss="mse")
        for file in (f"model_{number}.h5", f"model_{number}.weights.h5", f"model_{number}.keras"):
            path = writing.folder / file
            (model.save_weights if "weights" in file else model.save)(path)
            source: object = path
            if file.endswith(".keras"):
                with zipfile.ZipFile(path) as archive:
                    source = io.BytesIO(archive.read("model.weights.h5"))
            writing.expect(file, datasets(source))


checkpoints(writing.count // 2)
partitioned(writing.count // 6)
saved_models(writing.count // 12)
keras_files(writing.count // 12)
