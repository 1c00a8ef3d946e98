package state

import "time"

func (s *store) PutJournal(owner Owner, nonce Nonce, expires time.Time, journal []byte) error {
	unlock, err := s.open()
	if err != nil {
		return err
	}
	defer unlock()
	e := Entry{Kind: journalKind, ID: string(nonce[:]), Owner: owner.key(), Expires: expires.UnixMilli()}
	return s.write(e, journal)
}

func (s *store) Journal(nonce Nonce) ([]byte, error) {
	unlock, err := s.open()
	if err != nil {
		return nil, err
	}
	defer unlock()
	e, ok := s.find(journalKind, string(nonce[:]))
	if !ok {
		return nil, ErrLost
	}
	return s.read(e)
}
