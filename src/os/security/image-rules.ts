import type { SpecOf } from '../../cosi/resource.ts'
import { matchesStars } from '../../wire/wildcard.ts'
import type { ImageVerificationRule } from './resources/image-verification-rule.ts'

/** One rule, as stored. */
export type Rule = SpecOf<typeof ImageVerificationRule>

/** The names that Docker's registry has; a rule that names one of them is about both. */
const hubNames = ['docker.io', 'index.docker.io']

/**
 * The first rule whose pattern matches the image's name (registry and repository, without tag and digest). Only `*` is special: it
 * stands for any characters, `/` among them.
 */
export function ruleFor<R extends { readonly spec: Rule }>(rules: readonly R[], name: string): R | undefined {
  const slash = name.indexOf('/')
  const [domain, rest] = [name.slice(0, slash), name.slice(slash)]
  const names = hubNames.includes(domain) ? hubNames.map((hub) => hub + rest) : [name]
  return rules.find(({ spec: { imagePattern = '' } }) => names.some((each) => matchesStars(imagePattern, each)))
}
