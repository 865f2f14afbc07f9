//! What the command tells: tables and pictures.
