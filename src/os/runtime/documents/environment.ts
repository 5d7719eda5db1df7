import { described, mapOf, section, text } from '../../../document/fields.ts'
import { defineDocument } from '../../../document/kind.ts'

/** Variables for the system's services. */
export const EnvironmentConfig = defineDocument({
  kind: 'EnvironmentConfig',
  description: "Variables for the system's services.",
  schema: section({
    variables: described(
      mapOf(text),
      'Environment variables of the services of the system. The proxy that HTTP_PROXY, HTTPS_PROXY and NO_PROXY name is used for images, downloads and discovery.',
    ),
  }),
  rules({ variables = {} }, report) {
    for (const key of Object.keys(variables)) {
      if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(key)) report.error(['variables', key], `${JSON.stringify(key)} is not the name of a variable`)
    }
  },
})
