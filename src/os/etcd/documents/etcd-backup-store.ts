import * as v from 'valibot'
import { byteSize, described, duration, listOf, needed, section, text, unsigned } from '../../../document/fields.ts'
import { type DocumentOf, defineDocument } from '../../../document/kind.ts'
import { parseByteSize } from '../../../document/quantity.ts'
import { folderRules } from './folder-rules.ts'

const sender = section({
  name: described(needed(text), 'The name in its certificate, as given to `talosctl etcd backup sender`.'),
  maxSize: v.pipe(byteSize, v.description('The largest backup that is taken from it. Default: `2GiB`.'), v.metadata({ example: '512MiB' })),
  hourly: described(unsigned(16), 'How many new backups are taken from it in an hour. Default: 12.'),
  retention: described(
    section({
      keepLast: described(unsigned(16), 'How many of its backups are kept. Default: 30.'),
      maxAge: described(duration, 'Its backups that are older are deleted. The newest intact one stays.'),
    }),
    'Which of its backups are deleted after a new one was stored. The sender can delete none.',
  ),
})

/** Backups that are kept for other clusters. */
export const EtcdBackupStoreConfig = defineDocument({
  kind: 'EtcdBackupStoreConfig',
  description:
    'A store for the backups of other clusters, which send them to the machine API of this node. Only senders that are listed are admitted.',
  schema: section({
    volume: described(needed(text), 'The name of a volume for workloads: the folder is in it, below /var/mnt.'),
    path: described(text, 'Path of the folder in the volume. Each sender has a folder in it. Default: `received-etcd-backups`.'),
    senders: described(listOf(sender), 'The clusters whose backups are kept.'),
  }),
  rules({ volume = '', path, senders = [] }, report) {
    folderRules({ volume, path }, (key, message) => report.error([key], message))
    if (senders.length > mostSenders) report.error(['senders'], `at most ${mostSenders} senders`)
    const names = new Set<string>()
    for (const [index, { name = '', maxSize, hourly, retention }] of senders.entries()) {
      const at = (...keys: string[]) => ['senders', index, ...keys]
      if (!isSenderName(name)) report.error(at('name'), 'a name of letters, digits and hyphens is required')
      if (names.has(name)) report.error(at('name'), `another sender is named "${name}"`)
      names.add(name)
      if (maxSize !== undefined && !parseByteSize(maxSize)) report.error(at('maxSize'), 'more than nothing is required')
      if (hourly === 0) report.error(at('hourly'), 'at least one backup an hour: remove the sender to refuse it')
      if (retention?.keepLast === 0) report.error(at('retention', 'keepLast'), 'at least one backup has to be kept')
    }
  },
})

/** The document. */
export type EtcdBackupStore = DocumentOf<typeof EtcdBackupStoreConfig>

const mostSenders = 32

/** Whether a name may be a sender's: it is the name of a folder and of a certificate. */
export const isSenderName = (name: string): boolean => /^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$/.test(name)
