import * as v from 'valibot'
import { parseSchedule } from '../../../document/cron.ts'
import { base64, described, duration, listOf, needed, section, text, unsigned, url } from '../../../document/fields.ts'
import { type DocumentOf, defineDocument, type Reporter } from '../../../document/kind.ts'
import { recipientRules } from '../../../document/recipients.ts'
import { matches, parseCertificate } from '../../../pki/certificate.ts'
import { parseKey } from '../../../pki/key.ts'
import { parseIdentity } from '../../../wire/age/keys.ts'
import { parseHostPort } from '../../../wire/host-port.ts'
import { folderRules } from './folder-rules.ts'

const schedule = v.pipe(
  v.string(),
  v.check((value) => parseSchedule(value) !== undefined, '{} is not a schedule, like "0 */6 * * *" (UTC), "@daily" or "@every 6h"'),
)

const folder = section({
  volume: described(needed(text), 'The name of a volume for workloads: the folder is in it, below /var/mnt.'),
  path: described(text, 'Path of the folder in the volume. Default: `etcd-backups`.'),
})

const s3 = section({
  endpoint: described(needed(url('https', 'http')), 'The address of the server, without the bucket.'),
  region: described(text, 'The region that requests are signed for. Default: `us-east-1`.'),
  bucket: described(needed(text), 'The bucket. It is addressed in the path.'),
  prefix: described(text, 'The folder in the bucket. Default: `etcd-backups`.'),
  accessKeyId: described(needed(text), 'The name of the access key.'),
  secretAccessKey: described(needed(text), 'The secret of the access key.'),
  ca: described(text, 'Who signed the certificate of the server, in PEM. Default: the authorities that the system trusts.'),
})

const peer = section({
  endpoints: v.pipe(
    listOf(text),
    v.description('Addresses of its control planes, with a port unless it is 50000. Each backup is stored on the first one that takes it.'),
    v.metadata({ example: ['10.9.0.2', '10.9.0.3'] }),
  ),
  ca: described(needed(base64), 'The authority of its machine API, base64 of PEM.'),
  crt: described(needed(base64), 'The certificate that it issued for this cluster, base64 of PEM.'),
  key: described(needed(base64), 'The private key of the certificate, base64 of PEM.'),
})

const target = section({
  name: described(needed(text), 'The unique name of the target.'),
  folder: described(folder, 'A folder on a volume of the node that takes the backup.'),
  s3: described(s3, 'A bucket of an S3-compatible server.'),
  peer: described(
    peer,
    'The control planes of another cluster, which keep backups for this one as their EtcdBackupStoreConfig specifies; `talosctl etcd backup sender` prints it.',
  ),
})

/** Backups of etcd. */
export const EtcdBackupConfig = defineDocument({
  kind: 'EtcdBackupConfig',
  description: 'Backups of etcd that the control planes take by themselves: when, where to, how long they are kept, who can read them.',
  schema: section({
    schedule: v.pipe(
      needed(schedule),
      v.description('When backups are taken: five fields of crontab in UTC, `@hourly`, `@daily`, `@weekly`, `@monthly`, or `@every 6h`.'),
      v.metadata({ example: '0 */6 * * *' }),
    ),
    recipients: v.pipe(
      listOf(text),
      v.description('Public keys of age that backups are encrypted to. The identity of each of them can read the backups.'),
      v.metadata({ example: ['age1lvyvwawkr0mcnnnncaghunadrqkmuf9e6507x9y920xxpp866cnql7dp2z'] }),
    ),
    identity: described(
      text,
      'A private key of age that backups are encrypted to as well, so that the cluster can restore one without another key. It is a secret of the configuration, and reads every backup.',
    ),
    retention: described(
      section({
        keepLast: described(unsigned(16), 'How many backups each target keeps.'),
        maxAge: described(duration, 'Backups that are older are deleted. The newest intact one stays.'),
      }),
      'Which backups are deleted after a new one was stored. Default: the last 30 are kept.',
    ),
    targets: described(listOf(target), 'Where each backup is stored.'),
  }),
  rules(document, report) {
    if (!document.schedule) report.error(['schedule'], 'a schedule is required, like "0 */6 * * *"')
    keyRules(document, report)
    if (document.retention?.keepLast === 0) report.error(['retention', 'keepLast'], 'at least one backup has to be kept')
    targetRules(document.targets ?? [], report)
  },
})

/** The document. */
export type EtcdBackups = DocumentOf<typeof EtcdBackupConfig>

/** A target of the document. */
export type EtcdBackupTarget = NonNullable<EtcdBackups['targets']>[number]

function keyRules({ recipients = [], identity }: EtcdBackups, report: Reporter): void {
  if (recipients.length === 0 && !identity)
    report.error(
      ['recipients'],
      'a recipient (age1…) or an identity is required: a backup holds every secret of the cluster and is never stored readable',
    )
  recipientRules(recipients, 20, report)
  if (identity !== undefined && !parses(parseIdentity, identity))
    report.error(['identity'], 'not an identity of age: "AGE-SECRET-KEY-1…" is expected, as "age-keygen" prints it')
}

function parses(parse: (text: string) => unknown, value: string): boolean {
  try {
    parse(value)
    return true
  } catch {
    return false
  }
}

function targetRules(targets: readonly EtcdBackupTarget[], report: Reporter): void {
  if (targets.length === 0) report.error(['targets'], 'at least one target is required')
  const names = new Set<string>()
  for (const [index, { name = '', folder, s3, peer }] of targets.entries()) {
    const at = (...path: string[]) => ['targets', index, ...path]
    if (!/^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$/.test(name)) report.error(at('name'), 'a name of letters, digits and hyphens is required')
    if (names.has(name)) report.error(at('name'), `another target is named "${name}"`)
    names.add(name)
    if ([folder, s3, peer].filter(Boolean).length !== 1) report.error(at(), 'where backups are stored is required: one of folder, s3, peer')
    if (folder) folderRules(folder, (key, message) => report.error(at('folder', key), message))
    if (s3) s3Rules(s3, (key, message) => report.error(at('s3', key), message))
    if (peer) peerRules(peer, (key, message) => report.error(at('peer', key), message))
  }
}

type ReportKey = (key: string, message: string) => void

function s3Rules(
  { endpoint, bucket = '', prefix, region, accessKeyId, secretAccessKey, ca }: NonNullable<EtcdBackupTarget['s3']>,
  error: ReportKey,
): void {
  if (!endpoint) error('endpoint', 'the address of the server is required, like "https://s3.example.org"')
  else if (new URL(endpoint).search || new URL(endpoint).username) error('endpoint', 'an address without user and query is expected')
  if (!/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/.test(bucket)) error('bucket', 'the name of a bucket is required')
  if (prefix !== undefined && !/^[A-Za-z0-9._-]+(\/[A-Za-z0-9._-]+)*$/.test(prefix))
    error('prefix', 'a path like "cluster/etcd" is expected')
  if (region !== undefined && !/^[a-z0-9-]{1,40}$/.test(region)) error('region', 'the name of a region is expected')
  if (!/^[\w./+=-]{3,128}$/.test(accessKeyId ?? '')) error('accessKeyId', 'the name of the access key is required')
  if (!secretAccessKey) error('secretAccessKey', 'the secret of the access key is required')
  if (ca !== undefined && !ca.includes('-----BEGIN CERTIFICATE-----')) error('ca', 'not a certificate in PEM')
}

function peerRules({ endpoints = [], ca = '', crt = '', key = '' }: NonNullable<EtcdBackupTarget['peer']>, error: ReportKey): void {
  if (endpoints.length === 0) error('endpoints', 'the address of at least one of its control planes is required')
  if (endpoints.length > 16) error('endpoints', 'at most 16 addresses')
  for (const endpoint of endpoints)
    if (!parseHostPort(endpoint, apiPort))
      error('endpoints', `${JSON.stringify(endpoint)} is not an address, like "10.9.0.2" or "[fd00::2]:50000"`)
  const pem = { ca: fromPem(ca), crt: fromPem(crt), key: fromPem(key) }
  const expected = 'base64 of PEM is required, as "talosctl etcd backup sender" prints it'
  if (!parses(parseCertificate, pem.ca)) error('ca', expected)
  if (!parses(parseCertificate, pem.crt)) error('crt', expected)
  else if (!parses(parseKey, pem.key)) error('key', expected)
  else if (!matches(pem)) error('key', 'it is not the key of the certificate')
}

const fromPem = (base64: string): string => Buffer.from(base64, 'base64').toString()

/** The port of the machine API. */
const apiPort = 50_000
