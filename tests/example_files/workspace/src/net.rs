// TODO: the empty input
