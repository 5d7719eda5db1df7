import { ImageVerificationRule } from './resources/image-verification-rule.ts'
import { TUFTrustedRoot } from './resources/tuf-trusted-root.ts'

/** The kinds of resources of this area. */
export const resources = [ImageVerificationRule, TUFTrustedRoot]
