/** Files with identities of age. */
import { parseIdentityFile } from '../../wire/age/keys.ts'
import { codeOf } from '../../wire/errno.ts'
import { messageOf } from '../../wire/error-message.ts'
import { UsageError } from './failure.ts'
import { readTextIfThere } from './read-text.ts'

/** Reads the identities of a file. */
export async function readIdentities(path: string): Promise<Uint8Array[]> {
  let text: string | undefined
  try {
    text = await readTextIfThere(path)
  } catch (error) {
    throw new UsageError(`read "${path}": ${codeOf(error)}`)
  }
  if (text === undefined) throw new UsageError(`read "${path}": there is no such file`)
  try {
    return parseIdentityFile(text)
  } catch (error) {
    throw new UsageError(`"${path}" is no identity file of age: ${messageOf(error)}`)
  }
}
