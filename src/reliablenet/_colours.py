"""The colours of our figures: blue, orange and green, which colour-blind readers tell apart."""

COLOURS = ("#0072b2", "#d55e00", "#009e73")  # of Okabe and Ito
