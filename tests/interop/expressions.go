package main

import (
	"encoding/json"
	"os"

	celgo "github.com/google/cel-go/cel"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/siderolabs/talos/pkg/machinery/api/resource/definitions/block"
	"github.com/siderolabs/talos/pkg/machinery/api/resource/definitions/network"
	"github.com/siderolabs/talos/pkg/machinery/cel"
	"github.com/siderolabs/talos/pkg/machinery/cel/celenv"
)

// question is an expression and the values of its variables: messages as JSON, or plain values.
type question struct {
	Environment string                     `json:"environment"`
	Expression  string                     `json:"expression"`
	Values      map[string]json.RawMessage `json:"values"`
}

// answer is the reason why an expression was refused, or its result: true, false or an error.
type answer struct {
	Refused string `json:"refused,omitempty"`
	Result  string `json:"result,omitempty"`
}

var environments = map[string]func() *celgo.Env{
	"disk":   celenv.DiskLocator,
	"volume": celenv.VolumeLocator,
	"link":   celenv.LinkLocator,
}

// judgeExpressions type-checks and evaluates the expressions of a file in the field's own environments.
func judgeExpressions(file string) (any, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}

	var questions []question
	if err = json.Unmarshal(data, &questions); err != nil {
		return nil, err
	}

	answers := make([]answer, 0, len(questions))

	for _, q := range questions {
		values := map[string]any{}

		for name, raw := range q.Values {
			messages := map[string]proto.Message{
				"disk": &block.DiskSpec{}, "volume": &block.DiscoveredVolumeSpec{}, "link": &network.LinkStatusSpec{},
			}

			if message, ok := messages[name]; ok {
				if err = protojson.Unmarshal(raw, message); err != nil {
					return nil, err
				}

				values[name] = message

				continue
			}

			var value any
			if err = json.Unmarshal(raw, &value); err != nil {
				return nil, err
			}

			values[name] = value
		}

		answers = append(answers, judge(environments[q.Environment](), q.Expression, values))
	}

	return answers, nil
}

func judge(env *celgo.Env, text string, values map[string]any) answer {
	expression, err := cel.ParseBooleanExpression(text, env)
	if err != nil {
		return answer{Refused: err.Error()}
	}

	held, err := expression.EvalBool(env, values)
	if err != nil {
		return answer{Result: "error"}
	}

	if held {
		return answer{Result: "true"}
	}

	return answer{Result: "false"}
}
