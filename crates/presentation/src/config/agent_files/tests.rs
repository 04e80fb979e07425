//! Files of people, good, wrong and hostile.
