
14649f8bf84cc8b4<ps"0‚-º*

standalone/job:worker/replica:0/task:0*grpc*/job:worker/replica:0/task:00ö÷æøŸž±˜†