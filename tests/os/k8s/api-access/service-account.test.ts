import { describe, expect, test } from 'bun:test'
import type { KubeObject } from '../../../../src/kube/object.ts'
import {
  accountOf,
  isCurrent,
  isLeftOver,
  newConfig,
  type Policy,
  refusalOf,
  secretOf,
} from '../../../../src/os/k8s/api-access/service-account.ts'
import { fromBase64, newCA, parseCertificate, toBase64 } from '../../../../src/pki/certificate.ts'
import { allRoles } from '../../../../src/wire/x509/roles.ts'

const encoded = ({ crt, key }: { crt: string; key: string }) => ({ crt: toBase64(crt), key: toBase64(key) })
const policy: Policy = {
  authority: encoded(newCA({ subject: { organizations: ['talos'] } })),
  roles: ['os:reader', 'os:operator'],
  namespaces: ['tools'],
}
const object = (roles: unknown, more: object = {}): KubeObject => ({
  ...{
    apiVersion: 'talos.dev/v1alpha1',
    kind: 'ServiceAccount',
    metadata: { name: 'a', namespace: 'tools', uid: 'u1', ...more },
    spec: { roles },
  },
})
const account = (roles: unknown = ['os:reader'], more: object = {}) => accountOf(object(roles, more))
const owned = (owner: object): KubeObject => ({
  ...{ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'a', ownerReferences: [{ kind: 'ServiceAccount', name: 'a', ...owner }] } },
})

test('no more of an object is kept than matters, however large it is', () => {
  const roles = Array.from({ length: 10_000 }, (_, index) => `role-${index % 5_000}`)
  expect(accountOf(object(roles)).roles).toEqual(roles.slice(0, allRoles.length + 1))
  expect(accountOf({ ...object('all'), status: { failureReason: 7 } })).toMatchObject({ roles: undefined, failureReason: undefined })
})

describe('credentials are refused', () => {
  test.each([
    ['where a Secret of the name has no owner', account(), owned({ controller: false, uid: 'u1' }), 'ErrResourceExists'],
    ['where a Secret of the name has another owner', account(), owned({ controller: true, uid: 'u2' }), 'ErrResourceExists'],
    ['without roles', account(null), undefined, 'ErrRolesNotFound'],
    ['with an empty list of roles', account([]), undefined, 'ErrRolesNotFound'],
    ['in other namespaces', account(['os:reader'], { namespace: 'default' }), undefined, 'ErrNamespaceNotAllowed'],
    ['for other roles', account(['os:reader', 'os:admin']), undefined, 'ErrRolesNotAllowed'],
  ])('%s', (_, who, secret, reason) => {
    expect(refusalOf(who, secret, policy)?.reason).toBe(reason as 'ErrResourceExists')
  })

  test('when the configuration allows nothing', () => {
    expect(refusalOf(account(), undefined, { ...policy, namespaces: [] })?.reason).toBe('ErrNamespaceNotAllowed')
    expect(refusalOf(account(), undefined, { ...policy, roles: [] })?.reason).toBe('ErrRolesNotAllowed')
  })

  test('in a sentence of bounded length', () => {
    expect(refusalOf(account(['x'.repeat(100_000)]), undefined, policy)?.message.length).toBeLessThan(200)
  })
})

test('an account gets the roles that are allowed in its namespace, also over its own Secret', () => {
  expect(refusalOf(account(['os:operator', 'os:reader']), owned({ controller: true, uid: 'u1' }), policy)).toBeUndefined()
})

test('the Secret of a deleted account of the same name is left over', () => {
  const apiVersion = 'talos.dev/v1alpha1'
  expect(isLeftOver(owned({ apiVersion, controller: true, uid: 'u0' }), account())).toBe(true)
  expect(isLeftOver(owned({ apiVersion, controller: true, uid: 'u1' }), account())).toBe(false)
  expect(isLeftOver(owned({ apiVersion: 'v1', controller: true, uid: 'u0' }), account())).toBe(false)
})

describe('a client configuration', () => {
  const now = new Date('2026-01-01T12:00:00Z')
  const after = (minutes: number) => new Date(now.getTime() + minutes * 60_000)
  const roles = ['os:reader', 'os:operator']
  const config = newConfig(roles, policy, now)

  test('has one endpoint, the authority, and a certificate for six hours with the roles', () => {
    const { context, contexts } = Bun.YAML.parse(config) as { context: string; contexts: Record<string, Record<string, string>> }
    expect(context).toBe('default')
    expect(contexts.default).toMatchObject({ endpoints: ['talos.default'], ca: policy.authority.crt })
    const { subject, notAfter, extensions } = parseCertificate(fromBase64(contexts.default?.crt ?? ''))
    expect(subject.organizations?.toSorted()).toEqual(roles.toSorted())
    expect(notAfter).toEqual(after(360))
    expect(extensions.extendedKeyUsage).toEqual(['clientAuth'])
  })

  test('is in a Secret that ends with its account', () => {
    const { metadata, data } = secretOf(account(), config)
    expect(metadata.ownerReferences).toEqual([
      { apiVersion: 'talos.dev/v1alpha1', kind: 'ServiceAccount', name: 'a', uid: 'u1', controller: true, blockOwnerDeletion: true },
    ])
    expect(data).toEqual({ config: toBase64(config) })
  })

  test.each([
    ['new', 0, true],
    ['an hour and a minute before its end', 299, true],
    ['an hour before its end', 300, false],
    ['expired', 400, false],
    ['from the future, after the clock was set back', -1, false],
  ])('that is %s', (_, minutes, stays) => {
    expect(isCurrent(config, roles, policy, after(minutes))).toBe(stays)
  })

  test('is made again for other roles and for another authority, and stays when only the order changed', () => {
    expect(isCurrent(config, roles.toReversed(), policy, now)).toBe(true)
    expect(isCurrent(config, ['os:reader'], policy, now)).toBe(false)
    const authority = encoded(newCA({ subject: { organizations: ['talos'] } }))
    expect(isCurrent(config, roles, { ...policy, authority }, now)).toBe(false)
    const elsewhere = newConfig(roles, { ...policy, authority }, now)
    const swapped = elsewhere.replace(authority.crt, policy.authority.crt)
    expect(isCurrent(swapped, roles, policy, now)).toBe(false)
  })

  test.each([
    ['empty', ''],
    ['with another endpoint', config.replace('talos.default', 'elsewhere.example')],
    ['with more in it', `${config}nodes: []\n`],
    ['with a certificate that is none', config.replace(/crt: .{8}/, 'crt: AAAAAAAA')],
    ['with the key of others', config.replace(/key: .*/, /key: .*/.exec(newConfig(roles, policy, now))?.[0] ?? '')],
  ])('that is %s is made again', (_, other) => {
    expect(isCurrent(other, roles, policy, now)).toBe(false)
  })
})
