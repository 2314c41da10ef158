"""Does an answer obey the laws? Grades, their scales, and the certificate that they make."""
