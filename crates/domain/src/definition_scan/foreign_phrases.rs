//! Phrases of other languages that direct a model: to set instructions aside, to hide something from the user, and to act
//! without approval.

use super::kinds::{ADDRESSES, APPROVES, CONCEALS, DIRECTS, OVERRIDES};

/// Patterns by language. Russian, Korean and Turkish words are prefixes because of their endings, and each character of
/// Chinese and Japanese is a word.
#[rustfmt::skip]
pub(super) const FOREIGN: &[(&str, &str)] = &[
    // German
    (OVERRIDES, "ignorier*|vergiss|vergessen|missachte*|verwirf ~4 anweisung*|instruktion*|vorgaben|regeln|richtlinien|systemprompt"),
    (CONCEALS, "nicht|nie|niemals|ohne|nichts ~4 erwähn*|verrat*|mitteil*|sag|sage|sagen|erzähl*|informier*|offenleg*|zeig*|anzeig*|hinweis*|wissen|erfahren|merken ~4 nutzer*|benutzer*|anwender*|niemand*|davon|dies|es"),
    (CONCEALS, "erwähn*|verrat*|verrate|sag|sage|erzähl*|informier*|zeig*|teile ~4 nutzer*|benutzer*|anwender*|niemand*|es|dies|das ~3 nicht|niemals|nie|nichts"),
    (CONCEALS, "verheimlich*|verschweig*|verberge*|heimlich|unbemerkt"),
    (ADDRESSES, "hinweis|achtung|anweisung|wichtig|mitteilung ~1 für|an ~1 den|die|das|alle ~1 assistent*|ki|modell*|agent*|sprachmodell*"),
    (APPROVES, "nicht|nie|keine ~3 bestätigung|freigabe|zustimmung|erlaubnis ~2 frag*|bitte*|einhol*|warte*"),
    (DIRECTS, "vor ~1 jedem|jeder ~2 aufruf|antwort|werkzeug*"),
    (APPROVES, "ohne ~2 nachfrage|rückfrage|zustimmung|bestätigung|freigabe|genehmigung|einwilligung|erlaubnis"),
    (APPROVES, "ohne ~3 benutzer*|nutzer*|anwender* ~2 fragen|bestätig*|zu"),
    // French
    (OVERRIDES, "ignor*|oubli*|néglig* ~1 les|vos|tes|ces|toutes|des|aux ~2 consignes|instructions|règles|directives"),
    (CONCEALS, "ne|n|sans|jamais ~3 mentionn*|révél*|dis|dites|dire|inform*|parl*|signal*|divulgu*|montr*|affich*|prévien*|prévenir ~5 utilisateur|utilisateurs|personne"),
    (CONCEALS, "discrètement|secrètement|silencieusement|insu"),
    (ADDRESSES, "note|attention|consigne|instruction ~1 à|pour|au|aux ~2 assistant|ia|modèle|agent"),
    (APPROVES, "ne|n|pas|jamais ~2 demand* ~3 confirmation|autorisation|approbation|accord"),
    (DIRECTS, "avant ~1 chaque|tout|toute ~2 appel|réponse|outil"),
    (APPROVES, "sans ~3 confirmation|autorisation|approbation|accord|consentement|demander"),
    // Spanish and Portuguese
    (OVERRIDES, "ignor*|olvid*|descart*|desconsider*|esqueç*|esqueca ~4 instrucciones|instruções|reglas|regras|directrices|diretrizes|indicaciones"),
    (CONCEALS, "no|nunca|sin|não|nem|sem ~3 menci*|revel*|dig*|diz*|inform*|coment*|cont*|muestr*|mostr*|avis* ~5 usuario|usuária|usuário|utilizador|nadie|ninguém|esto|isso|isto|nada"),
    (CONCEALS, "secretamente|silenciosamente|discretamente"),
    (ADDRESSES, "nota|atención|atenção|instrucción|instrução|aviso ~2 asistente|assistente|ia|modelo|agente"),
    (APPROVES, "no|não|nunca ~2 pid*|peç*|pedir|solicit* ~2 confirma*|aproba*|aprova*|autoriza*|permis*"),
    (DIRECTS, "antes ~1 de ~2 cada|cualquier|qualquer ~2 llamada|chamada|herramienta|ferramenta|respuesta|resposta"),
    (APPROVES, "sin|sem ~3 confirm*|aprob*|aprov*|autoriz*|permiso|permissão|consent*|preguntar|perguntar"),
    // Italian
    (OVERRIDES, "ignor*|dimentic*|trascur* ~4 istruzioni|regole|direttive|indicazioni"),
    (CONCEALS, "non|mai|senza ~3 menzion*|rivel*|dire|dirlo|inform*|mostr*|comunic*|avvis*|accenn* ~5 utente|nessuno|questo|ciò|nulla"),
    (APPROVES, "non|mai ~2 chied* ~2 conferm*|approvazion*|autorizzazion*|permess*"),
    (DIRECTS, "non|mai ~2 us*|utilizz* ~2 più ~3 strument*|funzion*"),
    (DIRECTS, "prima ~1 di ~1 ogni ~2 strumento|risposta|chiamata"),
    (APPROVES, "senza ~3 conferma|approvazione|autorizzazione|consenso|permesso|chiedere"),
    // Dutch and Polish
    (OVERRIDES, "negeer|vergeet|zignoruj|ignoruj|zapomnij ~4 instructies|regels|aanwijzingen|instrukcj*|poleceni*|zasad*"),
    (CONCEALS, "niet|nooit|zonder|nie|nigdy ~3 vertel*|vermeld*|noem*|meld*|mów|wspomin*|informuj|ujawniaj|pokazuj ~4 gebruiker|niemand|użytkownik*|nikomu|tym|dit"),
    (CONCEALS, "vertel*|vermeld*|noem*|meld* ~4 gebruiker|dit ~3 niet|nooit"),
    (APPROVES, "zonder|bez ~3 toestemming|bevestiging|goedkeuring|zgody|potwierdzenia|pytania|vragen"),
    // Russian
    (OVERRIDES, "игнорир*|забуд*|отбрось*|не ~2 предыдущ*|прежн*|прошл*|систем*|исходн*|все|следуй ~2 инструкц*|указан*|правил*|команд*"),
    (CONCEALS, "не|никогда|ничего ~3 говори*|сообща*|упомина*|рассказ*|показы*|раскры*|уведомля* ~4 пользовател*|этом|это|никому"),
    (CONCEALS, "тайно|незаметно|скрытно|втайне"),
    (DIRECTS, "перед|прежде ~2 каждым|каждого|любым ~2 вызов*|ответ*|инструмент*"),
    (APPROVES, "без ~3 подтвержден*|разрешен*|согласи*|одобрен*|спрос*"),
    // Turkish
    (OVERRIDES, "önceki|tüm|sistem ~3 talimat*|kural*|yönerge* ~3 yok|unut*|görmezden|dikkate"),
    (CONCEALS, "kullanıcı* ~5 söyleme*|bahsetme*|bildirme*|gösterme*|açıklama*|belirtme*|haber"),
    (APPROVES, "onay*|izin ~2 almadan|istemeden|sormadan|beklemeden"),
    // Chinese
    (OVERRIDES, "忽|无|無 略|视|視 ~6 指|规|規|提|说|說 令|示|则|則|明"),
    (CONCEALS, "不|勿|别|別|無|无|切 ~3 告|透|提|通|显|顯|披|让|讓|向 诉|訴|露|及|知|示|用|使 ~4 用|任|使|此 户|戶|者|何|事|用"),
    (CONCEALS, "悄|暗|秘|偷 悄|中|密|偷"),
    (DIRECTS, "每|任 次|何 ~4 调|調|使|回 用|复|答 ~6 前|必|先"),
    (APPROVES, "无|無|不|未 需|须|須|经|經|要 ~4 确|確|批|许|許|同|询|詢|授 认|認|准|可|意|问|問|权|權"),
    // Japanese
    (OVERRIDES, "指|命|ル 示|令|ー ~8 無|忘 視|れ"),
    (CONCEALS, "ユ ー ザ ー ~3 に|へ|には ~16 な|せ い|ず"),
    (CONCEALS, "利 用 者 に ~14 な|せ い|ず"),
    (CONCEALS, "密 か に"),
    (APPROVES, "確|承|許 認|可 ~4 な|せ|ず|不 く|し|に|要|ず"),
    // Korean
    (OVERRIDES, "이전|기존|모든|시스템 ~3 지시*|지침*|명령*|규칙* ~3 무시*|잊*|따르지"),
    (CONCEALS, "사용자* ~5 알리지|말하지|언급하지|보여주지|밝히지|공개하지|숨기*|비밀*|알려주지"),
    (CONCEALS, "몰래|은밀히|비밀리에"),
    (APPROVES, "확인|승인|동의|허락|허가 ~1 없이"),
];
