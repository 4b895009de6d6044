#!/bin/sh
number=$(sed -n 's/^number = //p' staged/settings.ini)
awk -F : "\$3 == $number {print \"user $number is\", \$1}" staged/accounts.txt
