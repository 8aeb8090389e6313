"""The reference: TensorFlow's own server as a process.

python tf_server.py --cluster '{"local": ["localhost:2222"]}' --job local --task 0 [--config config.pbtxt]
"""

import argparse
import json
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
import tensorflow as tf
from google.protobuf import text_format

parser = argparse.ArgumentParser()
parser.add_argument("--cluster", required=True, help="JSON, {job: [address, ...]}")
parser.add_argument("--job", required=True)
parser.add_argument("--task", type=int, required=True)
parser.add_argument("--config", default="", help="file with a text-format ConfigProto; empty: none")
parser.add_argument("--config_text", default="", help="a text-format ConfigProto")
args = parser.parse_args()

config = text_format.Parse(args.config_text, tf.compat.v1.ConfigProto())
if args.config:
    with open(args.config) as f:
        text_format.Parse(f.read(), config)
server = tf.distribute.Server(
    json.loads(args.cluster), job_name=args.job, task_index=args.task, protocol="grpc", config=config
)
print("ready", server.target, flush=True)
server.join()
