import { expression, flag, oneOf, section, text } from '../../../document/fields.ts'
import { defineDocument } from '../../../document/kind.ts'
import { expressionRules, volumeNameRules } from './volume-fields.ts'

const mount = { readOnly: flag, disableAccessTime: flag, secure: flag }

/** A volume that is there already. */
export const ExistingVolumeConfig = defineDocument({
  kind: 'ExistingVolumeConfig',
  description: 'A volume that is there already and only has to be found.',
  nameKey: 'name',
  schema: section({
    name: text,
    discovery: section({ volumeSelector: section({ match: expression }) }),
    mount: section(mount),
  }),
  rules({ name, discovery }, report) {
    volumeNameRules(name, report, Number.POSITIVE_INFINITY)
    if (!discovery?.volumeSelector?.match) {
      report.error(['discovery', 'volumeSelector', 'match'], 'an expression that picks the volume is required')
    } else expressionRules(discovery.volumeSelector.match, 'volume', report, ['discovery', 'volumeSelector', 'match'])
  },
})

/** A volume that the host of a virtual machine shares. */
export const ExternalVolumeConfig = defineDocument({
  kind: 'ExternalVolumeConfig',
  description: 'A volume that the host of a virtual machine shares.',
  nameKey: 'name',
  schema: section({
    name: text,
    filesystemType: oneOf('virtiofs'),
    mount: section({ ...mount, virtiofs: section({ tag: text }) }),
  }),
  rules({ name, filesystemType, mount }, report) {
    volumeNameRules(name, report)
    if (!filesystemType) report.error(['filesystemType'], 'the type of file system is required: virtiofs')
    if (!mount?.virtiofs?.tag) report.error(['mount', 'virtiofs', 'tag'], 'the tag of the share is required')
  },
})
