import { expect, test } from 'bun:test'
import { section, text } from '../../../src/document/fields.ts'
import { notYet, unsupported } from '../../../src/document/unsupported.ts'
import { parseConfig } from '../../../src/os/config/parse.ts'
import { config } from './machine.ts'

const errors = (patch: string, type: 'controlplane' | 'worker' = 'controlplane') =>
  parseConfig(config(type, patch))
    .validate('metal')
    .errors.map(({ path, message }) => `${path}: ${message}`)

test.each([
  ['machine: {install: {extensions: [{image: a}]}}', 'machine.install.extensions'],
  ['machine: {features: {rbac: false}}', 'machine.features.rbac'],
  ['machine: {features: {apidCheckExtKeyUsage: false}}', 'machine.features.apidCheckExtKeyUsage'],
  ['kind: DHCPv6Config\napiVersion: v1alpha1\nname: a\nclientIdentifier: none', 'clientIdentifier'],
])('a key that is not acted on is refused with what to do instead: %s', (patch, path) => {
  expect(errors(patch)).toEqual([
    expect.stringMatching(new RegExp(`^${path.replace(/[.[\]]/g, '\\$&')}: not supported by this release: \\w`)),
  ])
})

test('what generators write there, and what requests nothing, is accepted', () => {
  expect(
    errors(
      'machine: {install: {bootloader: true, extensions: []}, features: {rbac: true, apidCheckExtKeyUsage: true, kubernetesTalosAPIAccess: {enabled: false}}, logging: {destinations: []}}\ncluster: {apiServer: {disablePodSecurityPolicy: true}}',
    ),
  ).toEqual([])
})

test('a section requests nothing as long as nothing in it does', () => {
  const schema = section({ a: notYet(section({ b: section({ c: text }) }), 'leave it out') })
  expect([...unsupported(schema, { a: { b: { c: '' } } })]).toEqual([])
  expect([...unsupported(schema, { a: { b: { c: 'x' } } })]).toEqual([{ path: ['a'], instead: 'leave it out' }])
})
