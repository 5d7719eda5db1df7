import { described, keyedListOf, listOf, section, text } from '../../../document/fields.ts'
import { defineDocument } from '../../../document/kind.ts'

/** Files and variables for a service of a system extension, by its name. */
export const ExtensionServiceConfig = defineDocument({
  kind: 'ExtensionServiceConfig',
  description: 'Files and variables for a service of a system extension, by its name.',
  nameKey: 'name',
  schema: section({
    name: described(text, 'The unique name of this document among those of its kind.'),
    configFiles: described(
      keyedListOf(
        section({ content: described(text, 'What is in the file.'), mountPath: described(text, 'Where the service finds it.') }),
        'mountPath',
      ),
      'Files the service is given.',
    ),
    environment: described(listOf(text), 'Environment variables, NAME=value.'),
  }),
  rules({ name, configFiles, environment }, report) {
    if (!name) report.error(['name'], 'a name is required')
    else if (!/^[-_a-z0-9]{1,63}$/.test(name))
      report.error(['name'], `${JSON.stringify(name)}: must be lower-case letters, digits, "-" and "_"`)
    if (!configFiles?.length && !environment?.length) report.error([], 'at least one of configFiles and environment is required')
    for (const [index, file] of (configFiles ?? []).entries()) {
      if (!file.content) report.error(['configFiles', index, 'content'], 'the content of the file is required')
      if (!file.mountPath) report.error(['configFiles', index, 'mountPath'], 'the path of the file is required')
      else if (!file.mountPath.startsWith('/'))
        report.error(['configFiles', index, 'mountPath'], `${JSON.stringify(file.mountPath)}: must be an absolute path`)
    }
  },
})
