"""What happens in one process is heard in the others at once.

A signal only says that something may have changed; the database says what. Whoever loses one finds out by looking, a
little later, so a carrier that is down costs time and never work.
"""
