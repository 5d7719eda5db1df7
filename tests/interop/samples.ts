/** A spec for every kind of resource with a value in every key, made from the table of shapes. */
import { enumNames, messageFields, type SpecField, specFields } from '../../src/rpc/resource-shapes.ts'

const values: Record<string, (key: string) => unknown> = {
  string: (key) => `text of ${key}`,
  bool: () => true,
  int: () => 42,
  uint: () => 43,
  double: () => 1.5,
  bytes: () => Buffer.from([1, 2, 255]),
  text: (key) => `contents of ${key}\nin two lines\n`,
  base64: () => Buffer.from('authority').toString('base64'),
  mac: () => '02:42:0a:05:00:02',
  ip: () => 'fd00::5',
  cidr: () => '10.5.0.2/24',
  hostport: () => '10.5.0.2:6443',
  duration: () => '1m30.5s',
  timestamp: () => '2026-11-21T09:45:36.5Z',
  url: () => ({
    scheme: 'https',
    opaque: '',
    user: null,
    host: '10.5.0.1:6443',
    path: '',
    fragment: '',
    rawquery: '',
    rawpath: '',
    rawfragment: '',
    forcequery: false,
    omithost: false,
  }),
  crtkey: () => ({ crt: Buffer.from('certificate').toString('base64'), key: Buffer.from('key').toString('base64') }),
  crt: () => ({ crt: Buffer.from('certificate').toString('base64') }),
  key: () => ({ key: Buffer.from('key').toString('base64') }),
  struct: () => ({ kind: 'Pod', nested: { list: ['a', true, 2] } }),
  wrapped: () => ({ kind: 'ConfigMap', data: { a: 'b' } }),
  yaml: () => ({ interface: 'eth0' }),
  pairs: () => ({ 'tx-checksum': 'on', 'rx-lro': 'off [fixed]' }),
}

/** The sample spec of a resource type. */
export function sampleSpec(type: string): unknown {
  const fields = specFields(type) ?? []
  if (type === 'MachineConfigs.config.talos.dev') return 'version: v1alpha1\nmachine:\n    type: worker\n'
  return fields[0]?.key === '.' ? sampleValue(fields[0]) : sampleFields(fields)
}

function sampleFields(fields: readonly SpecField[]): Record<string, unknown> {
  // What is not on the wire cannot come back from it.
  return Object.fromEntries(fields.filter(({ form, id }) => form !== 'cel' && id !== 0).map((field) => [field.key, sampleValue(field)]))
}

function sampleValue(field: SpecField): unknown {
  const one = () => {
    if (field.form === 'message') return sampleFields(messageFields(field.of))
    if (field.form === 'enum') return [...enumNames(field.of).byNumber].find(([number]) => number > 0)![1]
    if (field.form === 'flags') return [...enumNames(field.of).byNumber.values()].slice(0, 2).join(',')
    return values[field.form]!(field.key)
  }
  if (field.many === 'list') return [one(), one()]
  if (field.many === 'map') return { 'a/key': one() }
  return one()
}
