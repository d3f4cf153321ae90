"""mdot's C libraries in Python's eyes: structs as the public headers have them, functions, errors.

    structs.py    structs of include/mdot, field by field; a test compares them with the C compiler's
    libraries.py  finds and loads libmdot, libmdotjob and libmdotc, and says what their functions take
    errors.py     statuses as exceptions, the bits of predictions as warnings

Everything else in the package goes through these; nothing else imports ctypes for a struct of its own.
"""
