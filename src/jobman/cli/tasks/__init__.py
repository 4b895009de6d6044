"""`jobman task`: short tasks from the command line. Parses and prints; decides nothing."""
