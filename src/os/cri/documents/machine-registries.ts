import { base64, certificateAndKey, described, flag, listOf, section, text } from '../../../document/fields.ts'
import { byRegistry } from './registry-name.ts'

/** `machine.registries`: mirrors and credentials in the v1alpha1 document. */
export const machineRegistries = section({
  mirrors: described(
    byRegistry(
      section({
        endpoints: described(listOf(text), 'Their addresses, in order.'),
        overridePath: described(flag, 'Whether the address holds the whole path of the API.'),
        skipFallback: described(flag, 'Uses no other server when none of these has the image.'),
      }),
    ),
    'Other servers that are used instead of a registry.',
  ),
  config: described(
    byRegistry(
      section({
        tls: described(
          section({
            clientIdentity: described(certificateAndKey, 'Our certificate and key.'),
            ca: described(base64, 'Who signed the certificate of the server, base64 of PEM.'),
            insecureSkipVerify: described(flag, 'Takes any certificate: do not use this.'),
          }),
          'Certificates.',
        ),
        auth: described(
          section({
            username: described(text, 'The name we log in with.'),
            password: described(text, 'The password.'),
            auth: described(text, 'Name and password together, in base64.'),
            identityToken: described(text, 'A token in the place of name and password.'),
          }),
          'Who we are.',
        ),
      }),
    ),
    'How registries are talked to.',
  ),
})
