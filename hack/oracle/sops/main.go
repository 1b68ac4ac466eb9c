// Command sops-oracle records what SOPS makes of files, for crates/sops.
//
// `sops-oracle keys FOLDER` makes keys that open nothing but the recorded cases. `sops-oracle record FOLDER` reads
// FOLDER/inputs.jsonl, encrypts each input as the sops command does, decrypts it again as Flux's kustomize-controller
// does, and writes FOLDER/cases.jsonl.
package main

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"filippo.io/age"
	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	"github.com/getsops/sops/v3"
	"github.com/getsops/sops/v3/aes"
	sopsage "github.com/getsops/sops/v3/age"
	"github.com/getsops/sops/v3/cmd/sops/common"
	"github.com/getsops/sops/v3/cmd/sops/formats"
	"github.com/getsops/sops/v3/config"
	"github.com/getsops/sops/v3/logging"
	"github.com/getsops/sops/v3/pgp"
	"github.com/getsops/sops/v3/shamir"
	"github.com/getsops/sops/v3/version"
)

func main() {
	logging.SetLevel(0)
	var err error
	switch {
	case len(os.Args) == 3 && os.Args[1] == "keys":
		err = keys(os.Args[2])
	case len(os.Args) == 3 && os.Args[1] == "record":
		err = record(os.Args[2])
	default:
		err = fmt.Errorf("usage: sops-oracle keys|record FOLDER")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func keys(folder string) error {
	for _, name := range []string{"one", "two", "three", "stranger"} {
		identity, err := age.GenerateX25519Identity()
		if err != nil {
			return err
		}
		text := fmt.Sprintf("# public key: %s\n%s\n", identity.Recipient(), identity)
		if err := os.WriteFile(filepath.Join(folder, name+".agekey"), []byte(text), 0o644); err != nil {
			return err
		}
	}
	hybrid, err := age.GenerateHybridIdentity()
	if err != nil {
		return err
	}
	text := fmt.Sprintf("# public key: %s\n%s\n", hybrid.Recipient(), hybrid)
	if err := os.WriteFile(filepath.Join(folder, "hybrid.agekey"), []byte(text), 0o644); err != nil {
		return err
	}
	for name, options := range map[string]*packet.Config{
		"rsa":     {Algorithm: packet.PubKeyAlgoRSA, RSABits: 2048},
		"curve":   {Algorithm: packet.PubKeyAlgoEdDSA, Curve: packet.Curve25519},
		"curve-6": {Algorithm: packet.PubKeyAlgoEd25519, V6Keys: true},
		"p256":    {Algorithm: packet.PubKeyAlgoECDSA, Curve: packet.CurveNistP256},
	} {
		entity, err := openpgp.NewEntity(name, "test key of crates/sops", name+"@example.com", options)
		if err != nil {
			return err
		}
		var out bytes.Buffer
		writer, err := armor.Encode(&out, openpgp.PrivateKeyType, nil)
		if err != nil {
			return err
		}
		if err := entity.SerializePrivate(writer, nil); err != nil {
			return err
		}
		writer.Close()
		if err := os.WriteFile(filepath.Join(folder, name+".asc"), out.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// input is one line of inputs.jsonl. Changes are made to the encrypted text, in order.
type input struct {
	Name      string      `json:"name"`
	Format    string      `json:"format"`
	Output    string      `json:"output,omitempty"`
	Plain     string      `json:"plain,omitempty"`
	PlainB64  string      `json:"plain_base64,omitempty"`
	Keys      [][]string  `json:"keys,omitempty"`
	Threshold int         `json:"threshold,omitempty"`
	Options   options     `json:"options,omitempty"`
	Change    [][2]string `json:"change,omitempty"`
	Cut       int         `json:"cut,omitempty"`
}

type options struct {
	UnencryptedSuffix       string `json:"unencrypted_suffix,omitempty"`
	EncryptedSuffix         string `json:"encrypted_suffix,omitempty"`
	UnencryptedRegex        string `json:"unencrypted_regex,omitempty"`
	EncryptedRegex          string `json:"encrypted_regex,omitempty"`
	UnencryptedCommentRegex string `json:"unencrypted_comment_regex,omitempty"`
	EncryptedCommentRegex   string `json:"encrypted_comment_regex,omitempty"`
	MACOnlyEncrypted        bool   `json:"mac_only_encrypted,omitempty"`
}

// kase is one line of cases.jsonl.
type kase struct {
	Name      string     `json:"name"`
	Format    string     `json:"format"`
	Output    string     `json:"output,omitempty"`
	Keys      [][]string `json:"keys"`
	Encrypted string     `json:"encrypted"`
	Plain     string     `json:"plain,omitempty"`
	PlainB64  string     `json:"plain_base64,omitempty"`
	// Mac is "ok", "mismatch", or what went wrong.
	Mac   string `json:"mac,omitempty"`
	Error string `json:"error,omitempty"`
}

func record(folder string) error {
	file, err := os.Open(filepath.Join(folder, "inputs.jsonl"))
	if err != nil {
		return err
	}
	defer file.Close()
	out, err := os.Create(filepath.Join(folder, "cases.jsonl"))
	if err != nil {
		return err
	}
	defer out.Close()
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var in input
		if err := json.Unmarshal(lines.Bytes(), &in); err != nil {
			return fmt.Errorf("%s: %w", lines.Text(), err)
		}
		answer, err := one(folder, in)
		if err != nil {
			// SOPS does not encrypt it, so there is nothing to decrypt.
			fmt.Fprintf(os.Stderr, "%s: %v\n", in.Name, err)
			continue
		}
		if err := encoder.Encode(answer); err != nil {
			return err
		}
	}
	return lines.Err()
}

func one(folder string, in input) (kase, error) {
	if in.Keys == nil {
		in.Keys = [][]string{{"one"}}
	}
	format := formats.FormatFromString(in.Format)
	store := common.StoreForFormat(format, config.NewStoresConfig())
	plain := []byte(in.Plain)
	if in.PlainB64 != "" {
		plain, _ = base64.StdEncoding.DecodeString(in.PlainB64)
	}
	answer := kase{Name: in.Name, Format: in.Format, Output: in.Output, Keys: in.Keys}
	branches, err := store.LoadPlainFile(plain)
	if err != nil {
		return answer, err
	}
	groups, dataKey, err := encryptDataKey(folder, in)
	if err != nil {
		return answer, err
	}
	tree := sops.Tree{Branches: branches, Metadata: sops.Metadata{
		KeyGroups:               groups,
		ShamirThreshold:         in.Threshold,
		UnencryptedSuffix:       in.Options.UnencryptedSuffix,
		EncryptedSuffix:         in.Options.EncryptedSuffix,
		UnencryptedRegex:        in.Options.UnencryptedRegex,
		EncryptedRegex:          in.Options.EncryptedRegex,
		UnencryptedCommentRegex: in.Options.UnencryptedCommentRegex,
		EncryptedCommentRegex:   in.Options.EncryptedCommentRegex,
		MACOnlyEncrypted:        in.Options.MACOnlyEncrypted,
		Version:                 version.Version,
	}}
	if in.Options == (options{MACOnlyEncrypted: in.Options.MACOnlyEncrypted}) {
		tree.Metadata.UnencryptedSuffix = sops.DefaultUnencryptedSuffix
	}
	cipher := aes.NewCipher()
	mac, err := tree.Encrypt(dataKey, cipher)
	if err != nil {
		return answer, err
	}
	tree.Metadata.LastModified = time.Now().UTC()
	tree.Metadata.MessageAuthenticationCode, err = cipher.Encrypt(mac, dataKey, tree.Metadata.LastModified.Format(time.RFC3339))
	if err != nil {
		return answer, err
	}
	encrypted, err := store.EmitEncryptedFile(tree)
	if err != nil {
		return answer, err
	}
	text := string(encrypted)
	for _, change := range in.Change {
		if !strings.Contains(text, change[0]) {
			return answer, fmt.Errorf("nothing to change: %q in\n%s", change[0], text)
		}
		text = strings.Replace(text, change[0], change[1], 1)
	}
	if in.Cut > 0 {
		text = text[:len(text)-in.Cut]
	}
	answer.Encrypted = text
	output := format
	if in.Output != "" {
		output = formats.FormatFromString(in.Output)
	}
	decrypt(&answer, []byte(text), format, output, dataKey)
	return answer, nil
}

func decrypt(answer *kase, encrypted []byte, format, output formats.Format, dataKey []byte) {
	defer func() {
		if r := recover(); r != nil {
			answer.Error = fmt.Sprintf("panic: %v", r)
		}
	}()
	tree, err := common.StoreForFormat(format, config.NewStoresConfig()).LoadEncryptedFile(encrypted)
	if err != nil {
		answer.Error = "load: " + err.Error()
		return
	}
	cipher := aes.NewCipher()
	mac, err := tree.Decrypt(dataKey, cipher)
	if err != nil {
		answer.Error = "decrypt: " + err.Error()
		return
	}
	original, err := cipher.Decrypt(tree.Metadata.MessageAuthenticationCode, dataKey, tree.Metadata.LastModified.Format(time.RFC3339))
	switch {
	case err != nil:
		answer.Mac = err.Error()
	case original == mac:
		answer.Mac = "ok"
	default:
		answer.Mac = "mismatch"
	}
	out, err := common.StoreForFormat(output, config.NewStoresConfig()).EmitPlainFile(tree.Branches)
	switch {
	case err != nil:
		answer.Error = "emit: " + err.Error()
	case utf8.Valid(out):
		answer.Plain = string(out)
	default:
		answer.PlainB64 = base64.StdEncoding.EncodeToString(out)
	}
}

func encryptDataKey(folder string, in input) ([]sops.KeyGroup, []byte, error) {
	dataKey := bytes.Repeat([]byte{7}, 32)
	copy(dataKey, in.Name)
	parts := [][]byte{dataKey}
	if len(in.Keys) > 1 {
		threshold := in.Threshold
		if threshold == 0 {
			threshold = len(in.Keys)
		}
		var err error
		if parts, err = shamir.Split(dataKey, len(in.Keys), threshold); err != nil {
			return nil, nil, err
		}
	}
	var groups []sops.KeyGroup
	for i, names := range in.Keys {
		var group sops.KeyGroup
		for _, name := range names {
			text, err := os.ReadFile(filepath.Join(folder, name+".agekey"))
			if err == nil {
				recipient := strings.TrimPrefix(strings.SplitN(string(text), "\n", 2)[0], "# public key: ")
				key, err := sopsage.MasterKeyFromRecipient(recipient)
				if err != nil {
					return nil, nil, err
				}
				if err := key.Encrypt(parts[i]); err != nil {
					return nil, nil, err
				}
				group = append(group, key)
				continue
			}
			key, err := openPGP(filepath.Join(folder, name+".asc"), parts[i])
			if err != nil {
				return nil, nil, err
			}
			group = append(group, key)
		}
		groups = append(groups, group)
	}
	return groups, dataKey, nil
}

// openPGP encrypts as pgp.MasterKey does without gpg, with a key from a file.
func openPGP(path string, part []byte) (*pgp.MasterKey, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	ring, err := openpgp.ReadArmoredKeyRing(file)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	armored, err := armor.Encode(&out, "PGP MESSAGE", nil)
	if err != nil {
		return nil, err
	}
	plain, err := openpgp.Encrypt(armored, ring[:1], nil, &openpgp.FileHints{IsBinary: true}, nil)
	if err != nil {
		return nil, err
	}
	if _, err := plain.Write(part); err != nil {
		return nil, err
	}
	plain.Close()
	armored.Close()
	key := pgp.NewMasterKeyFromFingerprint(fmt.Sprintf("%X", ring[0].PrimaryKey.Fingerprint))
	key.EncryptedKey = out.String()
	return key, nil
}
