/** A signature of an image that a rule does not accept; the message completes "the image is refused by rule N: ". */
export class SignatureError extends Error {
  override name = 'SignatureError'
}
