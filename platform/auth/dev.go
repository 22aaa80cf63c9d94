package auth

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/platform/text"
)

// devLifetime is a working day.
const devLifetime = 12 * time.Hour

// A DevTokenRequest is the body of POST /dev/token.
type DevTokenRequest struct {
	Name string `json:"name"`
	Role Role   `json:"role"`
	Sub  string `json:"sub,omitempty"` // a fresh one if empty
	// Departments are the codes of an official's.
	Departments []string `json:"departments,omitempty"`
}

// A DevToken is the answer of POST /dev/token.
type DevToken struct {
	AccessToken string `json:"access_token"`
	TokenType   string `json:"token_type"`
	ExpiresIn   int    `json:"expires_in"` // seconds
	Sub         string `json:"sub"`
}

// Dev reports whether the development issuer is open.
func (v *Verifier) Dev() bool { return v.cfg.Mode == Dev }

// IssueDevToken serves POST /dev/token. It answers 404 unless the mode is Dev.
func (v *Verifier) IssueDevToken(w http.ResponseWriter, r *http.Request) error {
	if !v.Dev() {
		return service.NotFound.New("there is no development issuer here")
	}
	if !v.cfg.isDevHost(r.Host) {
		return service.Forbidden.New("the development issuer answers under localhost, and under the hosts that AUTH_DEV_HOSTS names")
	}
	var req DevTokenRequest
	dec := json.NewDecoder(r.Body)
	dec.DisallowUnknownFields()
	if err := dec.Decode(&req); err != nil {
		return service.MalformedBody.New("the body must be {name, role, sub?, departments?}")
	}
	if faults := req.faults(); len(faults) > 0 {
		return service.InvalidInput.New("", faults...)
	}
	if req.Sub == "" {
		req.Sub = uuid.NewString()
	}
	token, err := v.sign(req)
	if err != nil {
		return err
	}
	return service.Encode(w, http.StatusOK, DevToken{token, "Bearer", int(devLifetime.Seconds()), req.Sub})
}

func (req DevTokenRequest) faults() []service.FieldError {
	var faults []service.FieldError
	if displayName(req.Name) == "" || utf8.RuneCountInString(req.Name) > maxName {
		faults = append(faults, service.FieldError{Pointer: "/name", Detail: fmt.Sprintf("must have 1 to %d characters in one line", maxName)})
	}
	if !slices.Contains(roles, req.Role) {
		faults = append(faults, service.FieldError{Pointer: "/role", Detail: "must be resident, official, moderator, operator or auditor"})
	}
	if len(req.Sub) > maxID || req.Sub != "" && text.CheckID(req.Sub) != nil {
		faults = append(faults, service.FieldError{Pointer: "/sub", Detail: fmt.Sprintf("must have at most %d bytes in one line", maxID)})
	}
	if len(req.Departments) > maxDepartments || slices.ContainsFunc(req.Departments, func(code string) bool { return !IsCode(code) }) {
		faults = append(faults, service.FieldError{Pointer: "/departments", Detail: fmt.Sprintf("must be at most %d codes of departments", maxDepartments)})
	}
	return faults
}

func (v *Verifier) sign(req DevTokenRequest) (string, error) {
	now := v.now()
	claims := jwt.MapClaims{
		"iss": v.cfg.Issuer, "aud": v.cfg.Audience, "sub": req.Sub, "name": req.Name,
		v.cfg.RoleClaim: req.Role, "iat": now.Unix(), "exp": now.Add(devLifetime).Unix(),
	}
	if len(req.Departments) > 0 {
		claims[v.cfg.DepartmentsClaim] = req.Departments
	}
	token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString([]byte(v.cfg.Secret))
	if err != nil {
		return "", fmt.Errorf("sign token: %w", err)
	}
	return token, nil
}
