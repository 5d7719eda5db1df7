import type { SpecOf } from '../../cosi/resource.ts'
import { matchesStars } from '../../wire/wildcard.ts'
import type { ImageVerificationRule } from './resources/image-verification-rule.ts'

/** One rule, as stored. */
export type Rule = SpecOf<typeof ImageVerificationRule>

/** The first rule whose pattern matches the image's name without tag and digest; only `*` is special: it stands for any characters, `/` among them. */
export function ruleFor<R extends { readonly spec: Rule }>(rules: readonly R[], name: string): R | undefined {
  return rules.find(({ spec }) => matchesStars(spec.imagePattern ?? '', name))
}
