import { stringify } from 'yaml'

/**
 * Formats a value as YAML for a program of Kubernetes. Its parser takes a plain `yes`, `1:30` or `0o17` for something else than a
 * string and refuses the configuration then, so every string is quoted.
 */
export const kubeYaml = (value: unknown): string =>
  stringify(value, {
    version: '1.1',
    defaultStringType: 'QUOTE_DOUBLE',
    defaultKeyType: 'PLAIN',
    lineWidth: 0,
    aliasDuplicateObjects: false,
  })
