/* check_directory.h — a folder as `mdot check` and mdotc_check accept it: a model with inputs and expected outputs. */
#pragma once

/* Writes FOLDER/name with y = x + x for [1, 2, 3]. `second` is the expected second element; 4 is correct. */
void write_check_directory(const char *folder, const char *name, float second);
