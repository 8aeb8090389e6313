

fifo_queuefifo_queue_enqueuefifo_queue_Close"fifo_queue_Close_1*