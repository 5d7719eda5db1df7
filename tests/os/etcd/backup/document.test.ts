import { expect, test } from 'bun:test'
import { ConfigContainer } from '../../../../src/os/config/container.ts'
import { isSecret } from '../../../../src/os/config/history/change-text.ts'
import { day, newCA, newCertificate, toBase64 } from '../../../../src/pki/certificate.ts'

const recipient = 'age1lvyvwawkr0mcnnnncaghunadrqkmuf9e6507x9y920xxpp866cnql7dp2z'
const identity = 'AGE-SECRET-KEY-1N9JEPW6DWJ0ZQUDX63F5A03GX8QUW7PXDE39N8UYF82VZ9PC8UFS3M7XA9'

const s3 = { endpoint: 'https://s3.test', bucket: 'backups', accessKeyId: 'AKIA', secretAccessKey: 'secret' }

const ca = newCA({ subject: { organizations: ['test'] }, kind: 'ed25519' })
const sender = () => newCertificate({ ca, subject: { commonName: 'x' }, usage: ['clientAuth'], lifetime: day })
const own = sender()
const peer = { endpoints: ['10.9.0.2', '[fd00::2]:50000'], ca: toBase64(ca.crt), crt: toBase64(own.crt), key: toBase64(own.key) }

const whole = {
  schedule: '@daily',
  recipients: [recipient],
  retention: { keepLast: 3, maxAge: '720h' },
  targets: [{ name: 'disk', folder: { volume: 'backups', path: 'a/b' } }],
}

/** What is wrong with a document. */
function problemsOf(document: object): string {
  const text = JSON.stringify({ apiVersion: 'v1alpha1', kind: 'EtcdBackupConfig', ...document })
  try {
    const { errors } = ConfigContainer.parse(text).validate('metal')
    return errors.map(({ path, message }) => `${path}: ${message}`).join('\n')
  } catch (error) {
    return String(error)
  }
}

test('a whole document is taken, also with the identity alone', () => {
  expect(problemsOf(whole)).toBe('')
  expect(problemsOf({ ...whole, targets: [{ name: 'away', s3 }] })).toBe('')
  expect(problemsOf({ ...whole, targets: [{ name: 'peer', peer }] })).toBe('')
  expect(problemsOf({ ...whole, recipients: undefined, identity })).toBe('')
})

test.each([
  ['no schedule', { schedule: undefined }, 'schedule: a schedule is required'],
  ['a schedule that is none', { schedule: 'often' }, 'schedule: "often" is not a schedule'],
  ['nobody who can read it', { recipients: [] }, 'recipients: a recipient (age1…) or an identity is required'],
  ['a recipient that is none', { recipients: ['ssh-ed25519 AAAA'] }, 'recipients[0]: not a recipient of age'],
  ['an identity that is none', { identity: recipient }, 'identity: not an identity of age'],
  ['nothing kept', { retention: { keepLast: 0 } }, 'retention.keepLast: at least one backup has to be kept'],
  ['no target', { targets: [] }, 'targets: at least one target is required'],
  ['two targets of one name', { targets: [...whole.targets, ...whole.targets] }, 'targets[1].name: another target is named "disk"'],
  ['a target without a place', { targets: [{ name: 'x' }] }, 'targets[0]: where backups are stored is required'],
  [
    'a path that leads out',
    { targets: [{ name: 'x', folder: { volume: 'v', path: '../etc' } }] },
    'targets[0].folder.path: a path inside the volume',
  ],
  ['a volume that is none', { targets: [{ name: 'x', folder: { volume: '../x' } }] }, 'targets[0].folder.volume: the name of a volume'],
  ['a bucket beside a folder', { targets: [{ ...whole.targets[0], s3 }] }, 'targets[0]: where backups are stored is required: one of'],
  ['a bucket without a secret', { targets: [{ name: 'x', s3: { ...s3, secretAccessKey: undefined } }] }, 'targets[0].s3.secretAccessKey:'],
  ['an endpoint with a user', { targets: [{ name: 'x', s3: { ...s3, endpoint: 'https://a:b@c' } }] }, 'targets[0].s3.endpoint: an address'],
  ['a prefix that leads out', { targets: [{ name: 'x', s3: { ...s3, prefix: '../x/' } }] }, 'targets[0].s3.prefix: a path like'],
  [
    'a peer without an address',
    { targets: [{ name: 'x', peer: { ...peer, endpoints: [] } }] },
    'targets[0].peer.endpoints: the address of at',
  ],
  [
    'a peer at no address',
    { targets: [{ name: 'x', peer: { ...peer, endpoints: ['a:b:c'] } }] },
    'peer.endpoints: "a:b:c" is not an address',
  ],
  [
    'a peer without a key',
    { targets: [{ name: 'x', peer: { ...peer, key: peer.crt } }] },
    'targets[0].peer.key: base64 of PEM is required',
  ],
])('%s is refused', (_, change, message) => {
  expect(problemsOf({ ...whole, ...change })).toContain(message)
})

const store = {
  kind: 'EtcdBackupStoreConfig',
  volume: 'received',
  senders: [{ name: 'away', maxSize: '1GiB', hourly: 4, retention: { keepLast: 3, maxAge: '720h' } }],
}

test('a store is taken, also one without senders, which admits nobody', () => {
  expect(problemsOf(store)).toBe('')
  expect(problemsOf({ ...store, senders: undefined })).toBe('')
})

test.each([
  ['no volume', { volume: undefined }, 'volume: the name of a volume'],
  ['a path that leads out', { path: 'a/../..' }, 'path: a path inside the volume'],
  ['a name that is a path', { senders: [{ name: '../x' }] }, 'senders[0].name: a name of letters'],
  ['two senders of one name', { senders: [{ name: 'a' }, { name: 'a' }] }, 'senders[1].name: another sender is named "a"'],
  ['a size of nothing', { senders: [{ name: 'a', maxSize: '0' }] }, 'senders[0].maxSize: more than nothing'],
  ['a rate of nothing', { senders: [{ name: 'a', hourly: 0 }] }, 'senders[0].hourly: at least one backup an hour'],
  ['nothing kept', { senders: [{ name: 'a', retention: { keepLast: 0 } }] }, 'senders[0].retention.keepLast: at least one'],
  ['too many senders', { senders: Array.from({ length: 33 }, (_, i) => ({ name: `a${i}` })) }, 'senders: at most 32'],
])('a store with %s is refused', (_, change, message) => {
  expect(problemsOf({ ...store, ...change })).toContain(message)
})

test('a worker cannot have it', () => {
  const text = JSON.stringify({ apiVersion: 'v1alpha1', kind: 'EtcdBackupConfig', ...whole })
  const errors = (type: string) =>
    ConfigContainer.parse(`version: v1alpha1\nmachine: {type: ${type}}\n---\n${text}\n`)
      .validate('metal')
      .errors.map(({ message }) => message)
  expect(errors('worker')).toContain('only control planes have this document: leave it out on a worker')
  expect(errors('controlplane')).not.toContain('only control planes have this document: leave it out on a worker')
})

test('the identity and the secret of an access key are masked where changes are shown', () => {
  expect([isSecret('identity', identity), isSecret('secretAccessKey', 'x'), isSecret('recipients', recipient)]).toEqual([true, true, false])
})
