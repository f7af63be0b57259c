"""The Alertmanager door: a webhook that opens one investigation per alert and folds repeats into it."""
