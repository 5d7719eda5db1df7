/** What `./mkimage.sh` was given, looked at before anything is built of it. */

import { accessSync, constants, mkdirSync, readFileSync } from 'node:fs'
import { codeOf } from '../../src/wire/errno.ts'
import { messageOf } from '../../src/wire/error-message.ts'
import { UsageError } from '../build/failure.ts'
import type { ImageOptions } from './options.ts'
import { checkKeys, readPcrKey } from './secure-boot.ts'

/** Makes the output folder; wants the locked packages to be installed. Throws UsageError for what no image, or none that a machine can use, could be made of. */
export async function checkGiven({ output, secureBoot, pcrKey, platform, embedConfig }: ImageOptions): Promise<void> {
  try {
    mkdirSync(output, { recursive: true })
    accessSync(output, constants.W_OK)
  } catch (error) {
    throw new UsageError(`--output "${output}": ${codeOf(error)}, name a folder that you may write to`)
  }
  if (secureBoot) checkKeys(secureBoot)
  if (pcrKey) readPcrKey(pcrKey)
  await checkPlatform(platform)
  if (embedConfig) await checkConfig(embedConfig)
}

async function checkPlatform(platform: string): Promise<void> {
  const { platforms } = await import('../../src/os/network/platform/platforms.ts')
  const known = ['metal', ...Object.keys(platforms)]
  if (!known.includes(platform)) throw new UsageError(`--platform "${platform}": must be one of ${known.join(', ')}`)
}

/** By the rules of the machine, which would refuse it where nobody is there to mend it. */
async function checkConfig(path: string): Promise<void> {
  const { ConfigContainer } = await import('../../src/os/config/container.ts')
  const { ConfigError } = await import('../../src/document/config-error.ts')
  try {
    const { errors } = ConfigContainer.parse(readFileSync(path)).validate('metal')
    if (errors.length > 0) throw new ConfigError(errors)
  } catch (error) {
    throw new UsageError(`--embed-config "${path}": ${messageOf(error)}`)
  }
}
