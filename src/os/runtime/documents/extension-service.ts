import { keyedListOf, listOf, section, text } from '../../../document/fields.ts'
import { defineDocument } from '../../../document/kind.ts'

/** Files and variables for a service of an extension. */
export const ExtensionServiceConfig = defineDocument({
  kind: 'ExtensionServiceConfig',
  description: 'Files and variables for a service of an extension.',
  notYet: 'there are no system extensions, run the service as a pod',
  nameKey: 'name',
  schema: section({
    name: text,
    configFiles: keyedListOf(section({ content: text, mountPath: text }), 'mountPath'),
    environment: listOf(text),
  }),
  rules({ name, configFiles, environment }, report) {
    if (!name) report.error(['name'], 'a name is required')
    if (!configFiles?.length && !environment?.length) report.error([], 'at least one of configFiles and environment is required')
    for (const [index, file] of (configFiles ?? []).entries()) {
      if (!file.content) report.error(['configFiles', index, 'content'], 'the content of the file is required')
      if (!file.mountPath) report.error(['configFiles', index, 'mountPath'], 'the path of the file is required')
    }
  },
})
