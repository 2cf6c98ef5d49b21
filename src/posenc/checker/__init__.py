"""What running code, arrays and dumps really compute: recovered as numbers, compared with what is wanted, explained."""
