import { expression, flag, oneOf, section, text } from '../../../document/fields.ts'
import { defineDocument } from '../../../document/kind.ts'
import { expressionRules, volumeNameRules } from './volume-fields.ts'

const mount = { readOnly: flag, disableAccessTime: flag, secure: flag }

/** Configures an existing volume. */
export const ExistingVolumeConfig = defineDocument({
  kind: 'ExistingVolumeConfig',
  description: 'An existing volume, located by a selector.',
  nameKey: 'name',
  schema: section({
    name: text,
    discovery: section({ volumeSelector: section({ match: expression }) }),
    mount: section(mount),
  }),
  rules({ name, discovery }, report) {
    volumeNameRules(name, report, Number.POSITIVE_INFINITY)
    if (!discovery?.volumeSelector?.match) {
      report.error(['discovery', 'volumeSelector', 'match'], 'an expression that selects the volume is required')
    } else expressionRules(discovery.volumeSelector.match, 'volume', report, ['discovery', 'volumeSelector', 'match'])
  },
})

/** Configures a volume shared by the hypervisor's host. */
export const ExternalVolumeConfig = defineDocument({
  kind: 'ExternalVolumeConfig',
  description: 'A volume that the host shares with the virtual machine.',
  nameKey: 'name',
  schema: section({
    name: text,
    filesystemType: oneOf('virtiofs'),
    mount: section({ ...mount, virtiofs: section({ tag: text }) }),
  }),
  rules({ name, filesystemType, mount }, report) {
    volumeNameRules(name, report)
    if (!filesystemType) report.error(['filesystemType'], 'the file system type is required: virtiofs')
    if (!mount?.virtiofs?.tag) report.error(['mount', 'virtiofs', 'tag'], 'the tag of the share is required')
  },
})
