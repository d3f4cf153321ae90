/* check_directory.h — a folder as `mdot check` and mdotc_check take it: a model with inputs and expected outputs. */
#ifndef TEST_CHECK_DIRECTORY_H
#define TEST_CHECK_DIRECTORY_H

/* FOLDER/name with y = x + x on [1, 2, 3], whose expected second element is `second`; 4 is right. */
void write_check_directory(const char *folder, const char *name, float second);

#endif
