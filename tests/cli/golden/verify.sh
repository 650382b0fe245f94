# Every image verifies.
kiln verify | sed 's/^[1-9][0-9]* images/N images/'
kiln verify --json softmax | tail -3
