import { type Controller, defineController, exclusive, weak } from '../../../cosi/controller.ts'
import { declared, find } from '../../config/public.ts'
import { MachineConfig } from '../../config/resources/machine-config.ts'
import { ImageVerificationConfig } from '../../cri/documents/image-verification.ts'
import { ImageTrustedRootConfig } from '../documents/image-trusted-root.ts'
import { ImageVerificationRule } from '../resources/image-verification-rule.ts'
import { TUFTrustedRoot, trustedRootId } from '../resources/tuf-trusted-root.ts'
import { embeddedRoot } from '../signatures/embedded-root.ts'

/**
 * The operator's rules in order. The first rule that matches an image decides. The trusted root, the operator's or the one that
 * comes with the release, exists while a rule needs it, and before that rule.
 */
export const configImageVerification: Controller = defineController({
  name: 'security.ImageVerificationConfigController',
  effects: 'none',
  inputs: { config: weak(MachineConfig, { id: 'v1alpha1' }) },
  outputs: { roots: exclusive(TUFTrustedRoot), rules: exclusive(ImageVerificationRule) },
  reconcile({ config, roots, rules }) {
    const documents = declared(config.get('v1alpha1'))
    const given = find(documents, ImageVerificationConfig)
    if (given?.rules?.some(({ keyless }) => keyless)) {
      const own = find(documents, ImageTrustedRootConfig)?.trustedRoot
      roots.put(trustedRootId, own === undefined ? embeddedRoot : { jsonData: own })
    }
    for (const [index, { image, skip = false, deny = false, keyless, publicKey }] of (given?.rules ?? []).entries()) {
      rules.put(String(index).padStart(4, '0'), {
        imagePattern: image,
        skip,
        deny,
        ...(keyless && { keylessVerifier: { ...keyless, issuer: keyless.issuer ?? '' } }),
        ...(publicKey && { publicKeyVerifier: { certificate: publicKey.certificate ?? '' } }),
      })
    }
  },
})
