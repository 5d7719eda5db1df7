import * as v from 'valibot'
import { parseSchedule } from '../../../document/cron.ts'
import { described, duration, listOf, needed, section, text, unsigned, url } from '../../../document/fields.ts'
import { type DocumentOf, defineDocument, type Reporter } from '../../../document/kind.ts'
import { parseIdentity, parseRecipient } from '../../../wire/age/keys.ts'

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

const target = section({
  name: described(needed(text), 'The unique name of the target.'),
  folder: described(folder, 'A folder on a volume of the node that takes the backup.'),
  s3: described(s3, 'A bucket of an S3-compatible server.'),
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
  if (recipients.length > 20) report.error(['recipients'], 'at most 20 recipients')
  for (const [index, recipient] of recipients.entries())
    if (!parses(parseRecipient, recipient))
      report.error(['recipients', index], 'not a recipient of age: "age1…" is expected, as "age-keygen" prints it')
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
  for (const [index, { name = '', folder, s3 }] of targets.entries()) {
    const at = (...path: string[]) => ['targets', index, ...path]
    if (!/^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$/.test(name)) report.error(at('name'), 'a name of letters, digits and hyphens is required')
    if (names.has(name)) report.error(at('name'), `another target is named "${name}"`)
    names.add(name)
    if ([folder, s3].filter(Boolean).length !== 1) report.error(at(), 'where backups are stored is required: either folder or s3')
    if (folder) folderRules(folder, (key, message) => report.error(at('folder', key), message))
    if (s3) s3Rules(s3, (key, message) => report.error(at('s3', key), message))
  }
}

type ReportKey = (key: string, message: string) => void

function folderRules({ volume = '', path }: NonNullable<EtcdBackupTarget['folder']>, error: ReportKey): void {
  if (!/^[a-zA-Z0-9-]{1,34}$/.test(volume)) error('volume', 'the name of a volume for workloads is required, as in UserVolumeConfig')
  if (path !== undefined && (path === '' || path.split('/').some((part) => part === '' || part === '.' || part === '..')))
    error('path', 'a path inside the volume is expected, like "backups/etcd"')
}

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
