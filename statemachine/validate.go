package statemachine

func (t table) validate() error { return nil }
